/* Marks a function as exported by the library; all others are hidden. */
#ifndef SIMGPU_HARDWARE_EXPORT_H
#define SIMGPU_HARDWARE_EXPORT_H

#define EXPORT __attribute__((visibility("default")))

#endif
