/* Calls the pure modules with random bytes and long random histories; built with the sanitizers by test_sanitized.py.
 * Exit code 0, or the one of a sanitizer that has found an error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "region/account.h"
#include "books/physical/physical_memory.h"
#include "books/pools/exports.h"
#include "books/pointers/pointers.h"
#include "region/identity.h"
#include "process/fork.h"
#include "common/grammar.h"
#include "region/token_bucket.h"

static unsigned long long state;

static unsigned next(unsigned most) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % most;
}

static void scribble(void *at, size_t size, unsigned times) {
    for (unsigned i = 0; i < times; i++) ((unsigned char *)at)[next((unsigned)size)] = (unsigned char)next(256);
}

static void hostile_memory_exports(struct region *region, int slot, int card) {
    struct region_memory_exports *table = &region->memory_exports;
    table->high = next(2) ? next(5000) : UINT32_MAX;
    for (unsigned i = 0; i < 50; i++) {
        struct region_memory_export *row = &table->rows[next(REGION_MEMORY_EXPORTS)];
        *row = (struct region_memory_export){.key = next(9), .group = next(99), .bytes = state, .card = next(40), .slot = next(2000), .role = next(4), .state = next(3), .references = next(3)};
    }
    account_add_memory_export(region, &(struct region_memory_export){.key = next(9), .group = next(9), .bytes = state, .card = next(60), .slot = next(2000), .role = 1 + next(2)});
    account_add_memory_export(region, &(struct region_memory_export){.key = next(9), .group = next(9), .bytes = state, .card = (uint32_t)card, .slot = (uint32_t)slot, .role = 1 + next(2)});
    account_reconcile_unlisted(region, slot, card, state, account_calls(region, slot), (unsigned)account_calls(region, slot));
    account_reconcile_other(region, slot, card, state, account_calls(region, slot));
    account_end_memory_export(region, (int)next(2000) - 500, next(9), (int)next(60) - 10, state);
    account_drop_memory_import(region, next(2) ? slot : (int)next(2000) - 500, next(9));
    account_has_orphaned_memory(region, (int)next(60) - 10);
}

static void hostile_region(void) {
    struct region *region = region_anonymous();
    struct identity self = identity_self();
    uint8_t uuid[UUID_SIZE] = {0};
    for (unsigned i = 0; i < 300; i++) {
        scribble(region->cards, sizeof *region - offsetof(struct region, cards), 50);
        region->header.slots_high = next(2) ? next(3000) : UINT32_MAX;
        uuid[0] = (uint8_t)next(40);
        struct identity who = {next(50) + 1, next(3), self.namespace + 1};
        int slot = account_claim_slot(region, &who);
        int card = account_find_or_add_card(region, uuid);
        account_reserve(region, slot, card, state, next(2) ? UINT64_MAX : state);
        account_charge(region, (int)next(2000) - 500, (int)next(60) - 10, state);
        account_release(region, (int)next(2000) - 500, (int)next(60) - 10, state);
        account_mark_managed(region, (int)next(2000) - 500, (int)next(60) - 10, state);
        account_begin_call(region, (int)next(2000) - 500);
        account_reconcile(region, (int)next(2000) - 500, (int)next(60) - 10, state, next(2), next(2));
        account_reconcile(region, slot, card, state, account_calls(region, slot), (unsigned)account_calls(region, slot));
        account_reconcile_other(region, slot, card, state, account_calls(region, slot));
        account_end_call(region, (int)next(2000) - 500);
        account_unmark_managed(region, (int)next(2000) - 500, (int)next(60) - 10, state);
        account_count_refusal(region, (int)next(60) - 10);
        account_add_pool_export(region, &(struct region_pool_export){.key = next(9), .bytes = state, .card = next(60), .slot = next(2000),
                                                     .role = 1 + next(2)}, state);
        region->pool_exports[next(REGION_POOL_EXPORTS)].role = next(3);
        account_end_pool_exports(region, (int)next(2000) - 500, next(3), (int)next(60) - 10, state);
        hostile_memory_exports(region, slot, card);
        account_recompute(region);
        account_clear_slot(region, (int)next(2000) - 500);
        account_used(region, (int)next(60) - 10);
        account_used_by_process(region, next(50) + 1, self.namespace + 1, (int)next(60) - 10, &(uint64_t){0});
    }
    region_close(region);
}

/* With any bytes in a card's row, the wait for a turn is bounded by the largest debt, and the turn ends. */
static void hostile_turns(void) {
    struct region *region = region_anonymous();
    struct region_card *card = &region->cards[0];
    uint32_t ticket = 0;
    for (unsigned i = 0; i < 20000; i++) {
        scribble(card, sizeof *card, next(30));
        uint64_t now = (uint64_t)next(1000000) << next(32);
        uint64_t wait = token_bucket_take(card, next(3), &ticket, 1 + next(99), now);
        if (wait > 6000000 * NS_PER_MS + 1) abort(); /* a minute of debt at one percent */
        if (next(2)) token_bucket_extend_turn(card, next(3), state);
        if (next(2)) token_bucket_charge(card, next(3), 1 + next(99), state, now);
    }
    region_close(region);
}

static void hostile_limits(void) {
    struct limits_file file;
    struct limits_slot out = {0};
    uint8_t uuid[UUID_SIZE] = {1};
    for (unsigned i = 0; i < 2000; i++) {
        memset(&file, 0, sizeof file);
        memcpy(file.magic, LIMITS_MAGIC, sizeof file.magic);
        file.version = LIMITS_VERSION;
        file.slot_size = sizeof file.slots[0];
        scribble(&file, sizeof file, next(100));
        if (limits_decode(&file, &out)) limits_for_card(&out, uuid);
        limits_update(&file, &out);
        if (out.count > LIMITS_CARDS) abort();
    }
}

static void hostile_text(void) {
    static const char alphabet[] = "0123456789.,= GMKTiBPU-abcdef";
    struct limits_slot out;
    for (unsigned i = 0; i < 20000; i++) {
        char *text = malloc(80); /* the exact size, so that the sanitizer sees a read beyond it */
        unsigned length = next(79);
        for (unsigned at = 0; at < length; at++) text[at] = alphabet[next(sizeof alphabet - 1)];
        if (next(3) == 0 && length > 45) memcpy(text, "GPU-00000000-0000-0000-0000-00000000000f=", 41);
        text[length] = 0;
        const struct limits_text texts = {text, next(2) ? text : NULL, next(2) ? text : NULL, next(2) ? text : NULL};
        limits_parse(&texts, &out);
        free(text);
    }
}

static void histories(void) {
    struct pointer_charge holding;
    bool spare;
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t pointer = (1ULL << 40) + next(500) * 65536ULL;
        if (next(2))
            pointers_take(pointer, &holding);
        else if (!pointers_join_chunk(pointer))
            pointers_add_piece(pointer, 0, &spare);
        uint64_t handle = next(50) + 1;
        struct physical_memory freed = {0};
        if (next(3) == 0) physical_memory_create(handle, (struct physical_memory){0, 1});
        if (next(3) == 0) physical_memory_map(pointer, 65536, handle);
        if (next(3) == 0) physical_memory_retain(handle, pointer + next(65536));
        if (next(3) == 0) physical_memory_release(handle);
        while (next(2) && physical_memory_unmap(&pointer, pointer + 65536, &freed)) continue;
    }
    fork_forget_all();
}

/* Lost memory is never more than was exported, and ends with its pool. */
static void pool_histories(void) {
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t pool = 1 + next(3), address = (1ULL << 40) + next(64) * (POOL_STEP / 4);
        if (next(2)) exports_add(pool, address, next(5) * (POOL_STEP / 2));
        if (next(2)) exports_free(address);
        if (next(2)) exports_shrink(pool, next(5) * (POOL_STEP / 2));
        if (exports_lost_bytes(pool) > exports_bytes(pool)) abort();
        if (next(50) == 0) exports_end_pool(pool);
        uint64_t number = physical_memory_begin_pool();
        physical_memory_export_pool(number, (int)next(3));
        physical_memory_end_pool(number, 0, next(2));
    }
    for (uint64_t pool = 1; pool <= 3; pool++) exports_end_pool(pool);
    if (exports_lost_bytes(1) + exports_lost_bytes(2) + exports_lost_bytes(3) != 0) abort();
    fork_forget_all();
}

int main(int count, char **arguments) {
    state = count > 1 ? strtoull(arguments[1], NULL, 10) : 1;
    hostile_region();
    hostile_turns();
    hostile_limits();
    hostile_text();
    histories();
    pool_histories();
    return 0;
}
