// A checksum that every program of the zoo prints at its end, and the attributes that keep the
// optimiser off its point.
#include <stdio.h>

#define NOINLINE __attribute__((noinline))
#define UNUSED __attribute__((unused))

// volatile: signal handlers mix as well.
static volatile unsigned checksum = 2166136261u;

UNUSED static void mix(unsigned value) { checksum = (checksum ^ value) * 16777619u; }

UNUSED static void report(void) { printf("%08x\n", checksum); }
