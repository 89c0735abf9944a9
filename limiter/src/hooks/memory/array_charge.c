#include "hooks/memory/array_charge.h"

#include "books/array_chunks.h"
#include "books/pointers.h"
#include "charge/nvml_usage.h"
#include "charge/reconcile.h"
#include "container/container.h"
#include "driver/cards.h"
#include "region/account.h"

static bool is_small(const struct outlay *outlay) { return outlay->bytes <= PIECE_MOST; }

static uint32_t measured(int card) {
    const struct region *region = place_region();
    return region ? account_settled(region, place_slot(region), card) : 0;
}

/* Outside the span, so that of several threads that would be refused none keeps the others from being measured. */
static void measure_outside(struct attempt *attempt) {
    charge_leave(attempt->span);
    settle_own(attempt->uuid, 0);
    attempt->span = charge_enter();
}

static bool charge_chunk(struct attempt *attempt) {
    if (charge_try(attempt->uuid, GRANULE, &attempt->claim)) return true;
    measure_outside(attempt);
    return charge_reserve(attempt->what, attempt->uuid, GRANULE, &attempt->claim);
}

static struct attempt begin_small(const char *what, const struct outlay *outlay) {
    struct attempt attempt = attempt_begin_on(what, outlay->device, 0);
    int card = attempt.claim.card;
    if (!attempt.is_charged || shelves_join(outlay->device, outlay->bytes, measured(card))) return attempt;
    if (charge_chunk(&attempt)) {
        shelves_add(outlay->device, outlay->bytes, measured(card));
        return attempt;
    }
    attempt.is_refused = true;
    attempt_end(&attempt);
    return attempt;
}

struct attempt array_charge_begin(const char *what, const struct outlay *outlay) {
    return is_small(outlay) ? begin_small(what, outlay) : attempt_begin_on(what, outlay->device, outlay->bytes);
}

static void take_back_small(const struct outlay *outlay) {
    uint8_t uuid[UUID_SIZE];
    bool is_measurable = measure_is_trusted() && cards_of_device(outlay->device, uuid);
    struct shelf_end end = shelves_remove(outlay->device, outlay->bytes, measured(outlay->card), is_measurable);
    if (end.bytes) charge_release(outlay->card, end.bytes);
    if (end.is_due) settle_once(uuid, 1);
}

void array_charge_take_back(const struct outlay *outlay) {
    if (is_small(outlay))
        take_back_small(outlay);
    else
        charge_release(outlay->card, round_up(outlay->bytes, GRANULE));
}
