#include "array_charge.h"

#include "account.h"
#include "cards.h"
#include "holdings.h"
#include "measure.h"
#include "place.h"
#include "settle.h"
#include "shelves.h"

static bool is_small(const struct outlay *outlay) { return outlay->bytes <= PIECE_MOST; }

static uint32_t measured(const struct attempt *attempt) {
    const struct region *region = place_region();
    return region ? account_settled(region, place_slot(region), attempt->claim.card) : 0;
}

static struct attempt begin_chunk(const char *what, const struct outlay *outlay) {
    struct attempt attempt = attempt_begin_on(what, outlay->device, GRANULE);
    if (attempt.is_charged) shelves_add(outlay->device, outlay->bytes, measured(&attempt));
    return attempt;
}

static struct attempt begin_small(const char *what, const struct outlay *outlay) {
    struct attempt attempt = attempt_begin_on(what, outlay->device, 0);
    if (!attempt.is_charged || shelves_join(outlay->device, outlay->bytes, measured(&attempt))) return attempt;
    attempt_end(&attempt);
    return begin_chunk(what, outlay);
}

struct attempt array_charge_begin(const char *what, const struct outlay *outlay) {
    return is_small(outlay) ? begin_small(what, outlay) : attempt_begin_on(what, outlay->device, outlay->bytes);
}

/* What the end of a small one gives back is measured, where that can be; else it is reckoned. */
void array_charge_take_back(const struct outlay *outlay) {
    uint8_t uuid[UUID_SIZE];
    uint64_t bytes =
        is_small(outlay) ? shelves_remove(outlay->device, outlay->bytes) : round_up(outlay->bytes, GRANULE);
    if (is_small(outlay) && measure_is_trusted() && cards_of_device(outlay->device, uuid))
        settle_own(uuid, 1);
    else if (bytes)
        charge_release(outlay->card, bytes);
}
