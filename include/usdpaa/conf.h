/* How USDPAA's drivers are built: what programs see of it. */
#ifndef USDPAA_CONF_H
#define USDPAA_CONF_H

#define L1_CACHE_BYTES 64

/* Frame queues are found by a number of 32 bits, in a table of so many entries: pointers have more bits. */
#define CONFIG_FSL_QMAN_FQ_LOOKUP
#define CONFIG_FSL_QMAN_FQ_LOOKUP_MAX 32768

/* Entries that qman_poll() takes from the dequeue ring at most, in one call. */
#define CONFIG_FSL_QMAN_POLL_LIMIT 8

#endif
