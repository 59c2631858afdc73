#include "textflag.h"

// func caller() (id, pc uintptr, ticks int64)
//
// The frame of the caller's caller is that of an exported method. The word above it is the address to which that method returns.
TEXT ·caller(SB), NOSPLIT|NOFRAME, $0-24
	MOVQ (TLS), AX
	MOVQ AX, id+0(FP)
	MOVQ 0(BP), AX
	MOVQ 8(AX), AX
	MOVQ AX, pc+8(FP)
	RDTSC
	SHLQ $32, DX
	ORQ  DX, AX
	MOVQ AX, ticks+16(FP)
	RET
