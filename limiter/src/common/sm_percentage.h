/* Percent of a card's multiprocessors that a client of an MPS server may use: its active thread percentage. Pure. 0
 * stands for no cap. `percentage_of_process` of vgpu/domain/asks/space.py is the same rule in Python. */
#ifndef VGPU_COMMON_SM_PERCENTAGE_H
#define VGPU_COMMON_SM_PERCENTAGE_H

/* What the text of CUDA_MPS_ACTIVE_THREAD_PERCENTAGE says, rounded up to a whole percent. 0 where the text is NULL, or
 * anything but a number of digits, with or without a decimal point, above 0 and up to 100: the driver may read such a
 * text as more than is meant here, so it counts as no cap. */
unsigned sm_percentage_named(const char *text);

/* What a process may use at its start: a part of its container's `cap`, which `processes` living processes with this
 * one divide, or its `own` percentage where that is lower. */
unsigned sm_percentage_of_process(unsigned cap, unsigned own, unsigned processes);

#endif
