/* What the executable and the library of crossing have of each other. */
#ifndef CROSSING_H
#define CROSSING_H
#include <setjmp.h>

typedef int callback(int);

extern "C" {
/* of the library */
int lib_leaf(int x);
int lib_apply(callback *f, int n);
int lib_throw(int x);
int lib_catch(callback *f, int x);
int lib_through(callback *f, int x);
int lib_tail_pointer(callback *f, int x);
int lib_tail_call(int x);
int lib_ping(int n);
int lib_sort(int *list, int n, int (*compare)(const void *, const void *));
int lib_chosen(int x);
int lib_alloca(callback *f, int n);
int lib_setjmp(callback *f, int x);
void lib_longjmp(jmp_buf where, int x);
void lib_handler(int sig);
int lib_raise(int times);
void *lib_thread(void *count);
extern volatile int lib_count;
/* of the executable */
int exe_leaf(int x);
int exe_pong(int n);
}
#endif
