/* The buffer pools of network interfaces: their ids, bytes of a buffer, and how many buffers a program puts in. */
#ifndef USDPAA_INTERNAL_CONF_H
#define USDPAA_INTERNAL_CONF_H

#include "../conf.h"

#define DMA_MEM_BP1_BPID 7
#define DMA_MEM_BP1_SIZE 320
#define DMA_MEM_BP1_NUM 0
#define DMA_MEM_BP2_BPID 8
#define DMA_MEM_BP2_SIZE 704
#define DMA_MEM_BP2_NUM 0
#define DMA_MEM_BP3_BPID 9
#define DMA_MEM_BP3_SIZE 1728
#define DMA_MEM_BP3_NUM 0x2000
#define DMA_MEM_BPOOL_NUM (DMA_MEM_BP1_NUM + DMA_MEM_BP2_NUM + DMA_MEM_BP3_NUM)

#endif
