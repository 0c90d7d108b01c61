/*
 * How a program talks to the daemon that takes CPUs away and brings them back. No such daemon comes with Ringway; a program
 * that finds no socket there goes on without.
 */
#ifndef USDPAA_FSL_CPU_HOTPLUG_H
#define USDPAA_FSL_CPU_HOTPLUG_H

/* Where the daemon listens. */
#define S_APP_PATH "/run/usdpaa_hotplug"
/* Bytes of a message, and of a process's number with a slash before it. */
#define BUF_SIZE_MAX 64
#define SIZE_PID_MAX 16

#endif
