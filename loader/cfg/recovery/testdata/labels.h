// What programs of computed gotos need.
#pragma once

#define N __attribute__((noinline))
#define GO(table) goto *table[*pc++]
#define OFF(table) goto *(&&A + table[*pc++])
volatile long q = 1;
