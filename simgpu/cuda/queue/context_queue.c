#include "cuda/queue/context_queue.h"

#include <sys/prctl.h>

#include "cuda/device/devices.h"
#include "cuda/driver/driver.h"

bool channel_open(CUcontext context, struct channel *channel) {
    if (channel->queue.id != 0) return true;
    bool is_open = card_queue_open(device_at(context->device)->uuid, context->leader, &channel->queue);
    if (is_open && context->leader == 0) context->leader = channel->queue.number;
    return is_open;
}

bool queue_passed(struct card_queue queue, uint64_t position) {
    uint64_t earliest;
    return queue.id == 0 || card_queue_passed(queue, position, &earliest) != 0;
}

void queue_await(struct card_queue queue, uint64_t position) {
    uint64_t earliest;
    int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1UL); /* 1 ns: a real driver polls and does not sleep */
    while (queue.id != 0 && card_queue_passed(queue, position, &earliest) == 0) driver_sleep_until(earliest);
    prctl(PR_SET_TIMERSLACK, slack > 0 ? (unsigned long)slack : 0UL);
}
