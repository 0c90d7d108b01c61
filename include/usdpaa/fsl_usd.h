/* Portals of threads, and the managers of a process: USDPAA's fsl_usd.h. */
#ifndef FSL_USD_H
#define FSL_USD_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any portal that is free. */
#define QBMAN_ANY_PORTAL_IDX 0xffffffff

/*
 * Give the calling thread a portal, of which it can have one of each manager. The thread must be bound to exactly one
 * CPU (-EINVAL). -ENODEV: no portal is free; -EBUSY: the thread has one, or the one that it wants is in use.
 */
int qman_thread_init(void);
int bman_thread_init(void);
int qman_thread_init_idx(uint32_t idx);
int bman_thread_init_idx(uint32_t idx);

/* Give it back. */
int qman_thread_finish(void);
int bman_thread_finish(void);

/* A descriptor for select and poll. Once it is readable: read 4 bytes, then call *_thread_irq, which re-arms it. */
int qman_thread_fd(void);
int bman_thread_fd(void);
void qman_thread_irq(void);
void bman_thread_irq(void);

/* Once for a process. A second bman_global_init is -EBUSY. */
int qman_global_init(void);
int bman_global_init(void);

#ifdef __cplusplus
}
#endif

#endif
