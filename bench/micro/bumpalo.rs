// SPDX-License-Identifier: Apache-2.0
//
// bumpalo.rs - Rust's bumpalo, reset after each step; peer_bumpalo.c is its other half.
//
// The steps of small10k and const are loops written here, so that an allocation is inlined as it
// is in a Rust program. `remembered` makes the loop store its pointers, as the C loop does. The
// arena starts with room for a whole step, and reset() keeps its last piece.

use bumpalo::Bump;
use std::alloc::Layout;

const CONST_BYTES: usize = 48;

fn layout(bytes: usize) -> Layout {
    unsafe { Layout::from_size_align_unchecked(bytes, 16) }
}

#[inline(always)]
fn block(bump: &Bump, bytes: usize, value: usize, place: *mut *mut u8, remember: bool) {
    let block = bump.alloc_layout(layout(bytes)).as_ptr();
    unsafe {
        (block as *mut u64).write(value as u64);
        std::arch::asm!("/* {0} */", in(reg) block, options(nostack, readonly));
        if remember {
            place.add(value).write(block);
        }
    }
}

#[no_mangle]
pub extern "C" fn bumpalo_new(bytes: usize) -> *mut Bump {
    Box::into_raw(Box::new(if bytes == 0 { Bump::new() } else { Bump::with_capacity(bytes) }))
}

/// Safety: `bump` comes from bumpalo_new and is not used afterwards.
#[no_mangle]
pub unsafe extern "C" fn bumpalo_drop(bump: *mut Bump) {
    drop(Box::from_raw(bump));
}

/// Safety: `bump` comes from bumpalo_new.
#[no_mangle]
pub unsafe extern "C" fn bumpalo_alloc(bump: *mut Bump, bytes: usize) -> *mut u8 {
    (*bump).alloc_layout(layout(bytes)).as_ptr()
}

/// Safety: `bump` comes from bumpalo_new; no block of it is used afterwards.
#[no_mangle]
pub unsafe extern "C" fn bumpalo_reset(bump: *mut Bump) {
    (*bump).reset();
}

/// Safety: `bytes` is NULL or has `count` entries, `blocks` is NULL or has room for `count`.
#[no_mangle]
pub unsafe extern "C" fn bumpalo_step(
    bump: *mut Bump,
    bytes: *const u32,
    blocks: *mut *mut u8,
    count: usize,
) {
    let bump = &mut *bump;
    let remember = !blocks.is_null();
    if bytes.is_null() {
        for i in 0..count {
            block(bump, CONST_BYTES, i, blocks, remember);
        }
    } else {
        for i in 0..count {
            block(bump, *bytes.add(i) as usize, i, blocks, remember);
        }
    }
    bump.reset();
}
