// SPDX-License-Identifier: Apache-2.0
//
// leaving.h - what operator delete calls, if it is not NULL; it need not return.

#ifndef EBB_TESTS_RECORD_LEAVING_H
#define EBB_TESTS_RECORD_LEAVING_H

#ifdef __cplusplus
extern "C"
#else
extern
#endif
void (*leaving)(void);

#endif
