/* Marks a function as exported by the library; all others are hidden. */
#ifndef HARDWARE_EXPORT_H
#define HARDWARE_EXPORT_H

#define EXPORTED __attribute__((visibility("default")))

#endif
