/* A fork: no lock of ours may be held across it by another thread, and the child holds no memory of the card, for CUDA
 * does not survive it. */
#ifndef VGPU_MAIN_FORK_H
#define VGPU_MAIN_FORK_H

/* Once, before there is anything to forget. */
void fork_watch(void);

#endif
