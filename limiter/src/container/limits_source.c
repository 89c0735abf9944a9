#include "container/limits_source.h"

#include <stddef.h>

#include "common/clock.h"
#include "common/log.h"
#include "container/limits_file.h"
#include "container/settings.h"

struct source {
    bool is_limited;
    struct watched file;       /* none: the environment's limits */
    struct limits_slot limits; /* the last good copy; empty denies */
    struct region *region;
    const char *arbiter;
};

static void read_limits(struct source *source, const struct settings *settings) {
    bool good = settings->origin == ORIGIN_FILE ? watched_open(&source->file, settings->limits, &source->limits)
                                                : limits_parse(&settings->text, &source->limits);
    if (good) return;
    source->limits.count = 0;
    log_warn("%s cannot be read: no GPU memory may be used",
             settings->origin == ORIGIN_FILE ? settings->limits : "the limits in the environment");
}

struct source *source_open(void) {
    static struct source source;
    struct settings settings = settings_read();
    source.is_limited = settings.origin != ORIGIN_NONE;
    if (!source.is_limited) return &source;
    read_limits(&source, &settings);
    source.arbiter = settings.arbiter;
    source.region = settings.region ? region_open(settings.region) : region_anonymous();
    if (!source.region)
        log_warn("%s is no region: no GPU memory may be used", settings.region ? settings.region : "memory");
    return &source;
}

bool source_is_limited(const struct source *source) { return source->is_limited; }

static const struct limits_slot *at(struct source *source, uint64_t now) {
    watched_read(&source->file, &source->limits, now);
    return &source->limits;
}

static const struct limits_slot *current(struct source *source) { return at(source, moment_ticks()); }

struct card_limit source_limit(struct source *source, const uint8_t uuid[UUID_SIZE], uint64_t now) {
    return limits_of(at(source, now), uuid);
}

enum memory_policy source_memory_policy(struct source *source) { return current(source)->memory_policy; }

static unsigned share_of(const struct limits_slot *limits, const struct card_limit *limit) {
    bool is_share = limits->compute_policy == POLICY_FIXED && limit->cores > 0 && limit->cores < FULL_CORES;
    return is_share ? limit->cores : 0;
}

unsigned source_share(struct source *source, const uint8_t uuid[UUID_SIZE]) {
    const struct limits_slot *limits = current(source);
    struct card_limit limit = limits_of(limits, uuid);
    return share_of(limits, &limit);
}

bool source_has_shares(struct source *source) {
    const struct limits_slot *limits = current(source);
    for (uint32_t i = 0; i < limits->count; i++)
        if (share_of(limits, &limits->cards[i])) return true;
    return false;
}

struct region *source_region(const struct source *source) { return source->region; }

const char *source_arbiter(const struct source *source) { return source->arbiter; }

struct region *source_open_region(void) {
    struct settings settings = settings_read();
    return settings.origin != ORIGIN_NONE && settings.region ? region_open(settings.region) : NULL;
}
