#include "device_code.h"

#define DECLARE_MALLOC ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"

const char idle_code[] = PTX_HEADER ".visible .entry user()\n{\nret;\n}\n";

const char busy_code[] = PTX_HEADER
    ".visible .entry user()\n{\n.reg .u64 %t<3>;\n.reg .pred %p;\nmov.u64 %t0, %globaltimer;\n"
    "AGAIN:\nmov.u64 %t1, %globaltimer;\nsub.u64 %t2, %t1, %t0;\nsetp.lt.u64 %p, %t2, 1000000000;\n@%p bra AGAIN;\n"
    "ret;\n}\n";

const char heap_code[] = PTX_HEADER DECLARE_MALLOC
    ".visible .entry user()\n{\n.reg .b64 %rd<3>;\nmov.u64 %rd1, 64;\n{\n.param .b64 p0;\n.param .b64 q0;\n"
    "st.param.b64 [p0], %rd1;\ncall.uni (q0), malloc, (p0);\nld.param.b64 %rd2, [q0];\n}\n"
    "st.volatile.u8 [%rd2], 1;\nret;\n}\n";

const char heap_filling_code[] = PTX_HEADER DECLARE_MALLOC
    ".visible .global .align 4 .u32 got;\n"
    ".visible .entry user(.param .u64 bytes, .param .u32 count)\n{\n"
    ".reg .b64 %rd<4>;\n.reg .b32 %r<3>;\n.reg .pred %p<3>;\n"
    "ld.param.u64 %rd1, [bytes];\nld.param.u32 %r1, [count];\nmov.u32 %r2, 0;\n"
    "AGAIN:\n{\n.param .b64 p0;\n.param .b64 q0;\nst.param.b64 [p0], %rd1;\ncall.uni (q0), malloc, (p0);\n"
    "ld.param.b64 %rd2, [q0];\n}\nsetp.eq.u64 %p1, %rd2, 0;\n@%p1 bra DONE;\n"
    "st.volatile.u8 [%rd2], 1;\nadd.u32 %r2, %r2, 1;\nsetp.lt.u32 %p2, %r2, %r1;\n@%p2 bra AGAIN;\n"
    "DONE:\nmov.u64 %rd3, got;\nst.global.u32 [%rd3], %r2;\nret;\n}\n";

const char printf_code[] = PTX_HEADER
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n.global .align 1 .b8 text[2] = {32, 0};\n"
    ".visible .entry user()\n{\n.reg .b64 %rd<3>;\nmov.u64 %rd1, text;\ncvta.global.u64 %rd2, %rd1;\nmov.u64 %rd1, 0;\n"
    "{\n.param .b64 p0;\n.param .b64 p1;\n.param .b32 q0;\nst.param.b64 [p0], %rd2;\nst.param.b64 [p1], %rd1;\n"
    "call.uni (q0), vprintf, (p0, p1);\n}\nret;\n}\n";

/* Declarations as in the header of the device runtime; a dim3 is 12 bytes. The library has code for
 * each architecture apart, and the linked code must be of one that the card has: this is for compute capability 9. */
const char launch_code[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 f, .param .align 4 .b8 g[12],\n"
    " .param .align 4 .b8 b[12], .param .b32 s);\n"
    ".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 s);\n"
    ".visible .entry child()\n{\nret;\n}\n"
    ".visible .entry user()\n{\n.reg .b64 %rd<4>;\n.reg .b32 %r<2>;\nmov.u64 %rd1, child;\nmov.u32 %r1, 1;\n"
    "{\n.param .b64 p0;\n.param .align 4 .b8 p1[12];\n.param .align 4 .b8 p2[12];\n.param .b32 p3;\n.param .b64 q0;\n"
    "st.param.b64 [p0], %rd1;\n"
    "st.param.b32 [p1], %r1;\nst.param.b32 [p1+4], %r1;\nst.param.b32 [p1+8], %r1;\n"
    "st.param.b32 [p2], %r1;\nst.param.b32 [p2+4], %r1;\nst.param.b32 [p2+8], %r1;\n"
    "st.param.b32 [p3], 0;\n"
    "call.uni (q0), __cudaCDP2GetParameterBufferV2, (p0, p1, p2, p3);\nld.param.b64 %rd2, [q0];\n}\n"
    "mov.u64 %rd3, 0;\n{\n.param .b64 p0;\n.param .b64 p1;\n.param .b32 q0;\n"
    "st.param.b64 [p0], %rd2;\nst.param.b64 [p1], %rd3;\n"
    "call.uni (q0), __cudaCDP2LaunchDeviceV2, (p0, p1);\n}\nret;\n}\n";
