#include "hooks/memory/array_charge.h"

#include "books/arrays/array_chunks.h"
#include "books/pointers/pointers.h"
#include "charge/nvml/nvml_usage.h"
#include "charge/reconcile/reconcile.h"
#include "charge/release/release.h"
#include "charge/reserve/charge.h"
#include "container/container.h"
#include "driver/cards.h"
#include "region/account.h"

static bool is_small(const struct array_record *array_record) { return array_record->bytes <= PIECE_MAX; }

static uint32_t read_corrections(int card) {
    const struct region *region = container_region();
    return region ? account_corrections(region, container_slot(region), card) : 0;
}

/* The call is closed meanwhile. Otherwise several threads that are about to be refused would each keep the others from
 * being reconciled. */
static void reconcile_outside_call(struct attempt *attempt) {
    charge_end_call(attempt->call_slot);
    reconcile_own(attempt->uuid, 0);
    attempt->call_slot = charge_begin_call();
}

static bool charge_chunk(struct attempt *attempt) {
    if (charge_try(attempt->uuid, GRANULARITY, &attempt->reservation)) return true;
    reconcile_outside_call(attempt);
    return charge_reserve(attempt->function_name, attempt->uuid, GRANULARITY, &attempt->reservation);
}

static struct attempt begin_small(const char *function_name, const struct array_record *array_record) {
    struct attempt attempt = attempt_begin_on(function_name, array_record->device, 0);
    int card = attempt.reservation.card;
    if (!attempt.is_charged || array_chunks_join(array_record->device, array_record->bytes, read_corrections(card)))
        return attempt;
    if (charge_chunk(&attempt)) {
        array_chunks_add(array_record->device, array_record->bytes, read_corrections(card));
        return attempt;
    }
    attempt_refuse(&attempt);
    return attempt;
}

struct attempt array_charge_begin(const char *function_name, const struct array_record *array_record) {
    return is_small(array_record) ? begin_small(function_name, array_record)
                                  : attempt_begin_on(function_name, array_record->device, array_record->bytes);
}

static void release_small(const struct array_record *array_record) {
    uint8_t uuid[UUID_SIZE];
    bool is_measurable = nvml_usage_is_trusted() && cards_of_device(array_record->device, uuid);
    struct array_chunks_removal removal = array_chunks_remove(array_record->device, array_record->bytes,
                                                              read_corrections(array_record->card), is_measurable);
    if (removal.bytes) release_charge(array_record->card, removal.bytes);
    if (removal.is_due) reconcile_once(uuid, 1);
}

void array_charge_release(const struct array_record *array_record) {
    if (is_small(array_record))
        release_small(array_record);
    else
        release_charge(array_record->card, round_up(array_record->bytes, GRANULARITY));
}
