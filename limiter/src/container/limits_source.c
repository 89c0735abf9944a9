#include "container/limits_source.h"

#include <stddef.h>
#include <string.h>

#include "common/clock.h"
#include "common/grammar.h"
#include "common/log.h"
#include "container/limits_file.h"
#include "container/settings.h"
#include "region/slot_locks.h"

struct limits_source {
    bool is_limited;
    struct limits_file_watch file; /* its `path` is NULL where the limits come from the environment */
    struct limits_slot limits;     /* the last valid content; without entries it refuses every allocation */
    struct region *region;         /* NULL: cannot be used */
    const char *arbiter_socket;    /* path; NULL: none is configured */
    const char *space_directory;   /* of the group's MPS daemon, if there is a group; NULL: none is configured */
};

static void warn_denied(const struct settings *settings, const char *file, const char *problem) {
    log_warn("%s %s: every allocation of GPU memory will be refused%s", file, problem,
             settings->advice ? settings->advice : "");
}

static void read_limits(struct limits_source *source, const struct settings *settings) {
    bool is_valid = settings->origin == ORIGIN_FILE ? limits_file_open(&source->file, settings->limits, &source->limits)
                                                    : limits_parse(&settings->text, &source->limits);
    if (is_valid) return;
    source->limits.count = 0;
    warn_denied(settings,
                settings->origin == ORIGIN_FILE ? settings->limits : "the limits in the environment variables VGPU_*",
                "cannot be read");
}

static struct region *open_region(const struct settings *settings) {
    struct region *region = settings->region ? region_open(settings->region) : region_anonymous();
    if (!region)
        warn_denied(settings, settings->region ? settings->region : "anonymous memory", "cannot be used as the region");
    else if (settings->region)
        slot_locks_use(settings->region);
    return region;
}

struct limits_source *limits_source_open(void) {
    static struct limits_source source;
    struct settings settings = settings_read();
    source.is_limited = settings.origin != ORIGIN_NONE;
    if (!source.is_limited) return &source;
    read_limits(&source, &settings);
    source.arbiter_socket = settings.arbiter;
    source.space_directory = settings.space;
    source.region = open_region(&settings);
    return &source;
}

bool limits_source_is_limited(const struct limits_source *source) { return source->is_limited; }

static const struct limits_slot *limits_at(struct limits_source *source, uint64_t now) {
    limits_file_update(&source->file, &source->limits, now);
    return &source->limits;
}

static const struct limits_slot *current_limits(struct limits_source *source) {
    return limits_at(source, clock_ticks());
}

struct card_limit limits_source_limit(struct limits_source *source, const uint8_t uuid[UUID_SIZE], uint64_t now) {
    return limits_for_card(limits_at(source, now), uuid);
}

void limits_source_look(struct limits_source *source) { limits_file_look(&source->file, &source->limits); }

enum memory_policy limits_source_memory_policy(struct limits_source *source) {
    return current_limits(source)->memory_policy;
}

static unsigned share_of(const struct limits_slot *limits, const struct card_limit *limit) {
    bool is_share = limits->compute_policy == POLICY_FIXED && limit->cores > 0 && limit->cores < FULL_CORES;
    return is_share ? limit->cores : 0;
}

unsigned limits_source_share(struct limits_source *source, const uint8_t uuid[UUID_SIZE]) {
    const struct limits_slot *limits = current_limits(source);
    struct card_limit limit = limits_for_card(limits, uuid);
    return share_of(limits, &limit);
}

bool limits_source_has_shares(struct limits_source *source) {
    const struct limits_slot *limits = current_limits(source);
    for (uint32_t i = 0; i < limits->count; i++)
        if (share_of(limits, &limits->cards[i])) return true;
    return false;
}

struct region *limits_source_region(const struct limits_source *source) { return source->region; }

const char *limits_source_arbiter_socket(const struct limits_source *source) { return source->arbiter_socket; }

struct space_limits limits_source_space(struct limits_source *source) {
    const struct limits_slot *limits = current_limits(source);
    struct space_limits space = {0};
    if (!source->space_directory || !limits_is_in_space(limits)) return space;
    space.directory = source->space_directory;
    space.sm_percentage = limits->sm_percentage;
    memcpy(space.group, limits->space_group, sizeof space.group);
    return space;
}

struct region *limits_source_open_region(void) {
    struct settings settings = settings_read();
    return settings.origin != ORIGIN_NONE && settings.region ? region_open(settings.region) : NULL;
}
