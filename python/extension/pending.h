// SPDX-License-Identifier: Apache-2.0
#ifndef EBB_HANDOFF_H
#define EBB_HANDOFF_H
#include <ebb/ebb.h>
struct DLManagedTensor;
struct ebb_parcel { uint64_t pool; uint32_t slot, generation; uint64_t root, bytes; };
typedef struct ebb_lease ebb_lease;
static inline int ebb_region_send(ebb_region r, const void *root, struct ebb_parcel *p){(void)r;(void)root;(void)p;return -1;}
static inline size_t ebb_region_offset(ebb_region r, const void *a){(void)r;(void)a;return 0;}
static inline ebb_lease *ebb_parcel_open(ebb_pool *p, const struct ebb_parcel *q){(void)p;(void)q;return NULL;}
static inline const void *ebb_lease_root(ebb_lease *l, size_t *b){(void)l;(void)b;return NULL;}
static inline void *ebb_lease_at(ebb_lease *l, size_t o, size_t b){(void)l;(void)b;(void)o;return NULL;}
static inline void ebb_lease_hold(ebb_lease *l){(void)l;}
static inline void ebb_lease_drop(ebb_lease *l){(void)l;}
static inline struct DLManagedTensor *ebb_lease_export(ebb_lease *l, size_t o, struct ebb_dtype d, unsigned r, const int64_t *s, const int64_t *t){(void)l;(void)o;(void)d;(void)r;(void)s;(void)t;return NULL;}
static inline ebb_pool *ebb_pool_attach(int fd, const struct ebb_pool_options *o){(void)fd;(void)o;return NULL;}
static inline int ebb_pool_descriptor(ebb_pool *p){(void)p;return -1;}
static inline size_t ebb_pool_reclaim(ebb_pool *p, bool s){(void)p;(void)s;return 0;}
#endif
