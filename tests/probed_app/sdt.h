/* SPDX-License-Identifier: MIT
 * USDT probes as SystemTap's sys/sdt.h makes them (a nop and a note in the section .note.stapsdt), for x86-64, without
 * that package. */
#pragma once
#define USDT_SEMAPHORE(provider, name)                                                                                 \
    volatile unsigned short provider##_##name##_semaphore __attribute__((section(".probes"), used))
// clang-format off
#define USDT(provider, name, arguments, ...)                                                                           \
    __asm__ volatile("990: nop\n"                                                                                      \
                     ".pushsection .note.stapsdt,\"?\",\"note\"\n"                                                     \
                     ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n"                                                     \
                     "991: .asciz \"stapsdt\"\n"                                                                       \
                     "992: .balign 4\n"                                                                                \
                     "993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte " #provider "_" #name "_semaphore\n"             \
                     ".asciz \"" #provider "\"\n.asciz \"" #name "\"\n.asciz \"" arguments "\"\n"                      \
                     "994: .balign 4\n.popsection\n"                                                                   \
                     ".ifndef _.stapsdt.base\n"                                                                        \
                     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                           \
                     ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                                                  \
                     "_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n.endif\n" ::__VA_ARGS__)
// clang-format on
