#include "hooks/pools/pool_end.h"

#include "books/physical/physical_memory.h"
#include "books/pools/exports.h"
#include "charge/release/release.h"

/* An imported pool is not counted by what it has reserved: its charge is that of pointers without a row in the
 * region. */
static struct pending_export_end pending_end(const struct pool *pool, struct shared_pool shared) {
    if (!pool->is_counted)
        return (struct pending_export_end){.shared = shared.id,
                                           .card = shared.card,
                                           .bytes = shared.charged,
                                           .managed = shared.charged,
                                           .kind = END_OF_POOL};
    uint64_t managed = pool->lost_charged + (pool->is_managed ? pool->charged : 0);
    return (struct pending_export_end){.shared = shared.id,
                                       .card = pool->card,
                                       .bytes = pool->charged + pool->lost_charged,
                                       .managed = managed,
                                       .kind = END_OF_POOL};
}

/* Memory that an open descriptor still holds stays charged to this process (`kept`), and the pool's rows stay with it
 * until the descriptor is closed. */
static void end_shared(const struct pool *pool, struct shared_pool shared) {
    struct pending_export_end end = pending_end(pool, shared);
    struct physical_memory remaining = physical_memory_end_pool(shared.id, end.card, exports_bytes(shared.id));
    if (remaining.state == MEMORY_HIDDEN) end.kept = remaining.bytes;
    exports_end_pool(shared.id);
    release_shared(end);
}

void pool_end(const struct pool *pool, struct shared_pool shared) {
    if (shared.id)
        end_shared(pool, shared);
    else if (pool->is_counted)
        (pool->is_managed ? release_managed : release_charge)(pool->card, pool->charged);
}
