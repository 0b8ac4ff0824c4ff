// Package plan says which instructions of a program carry a probe, and what the events of the
// probes mean: they determine every path.
//
// A block with a probe is a witness. Between two events of an activation there is exactly one
// probe-free route. An activation has no event at all only where its callers imply what it did, and
// an event comes between any two calls of external code that could call back. What cannot be made
// so is left out, with its reason.
//
// The package holds the result alone. Package plan/planner finds it, plan/verify proves it,
// plan/chart shows what it makes of one routine, and those that attach and decode read it. It knows
// nothing of the kernel.
//
// # The rules
//
// The rules make probe-free routes sound. Comments everywhere name them by number and name.
// External code is the other images, be they traced by plans of their own, the kernel, and the
// routines of the program that are left out; it may call back, throw, and return twice.
//
//  1. Implied activations. An activation may end without an event only in a routine that traced
//     code alone enters, by direct calls and jumps, and where no fault leads to a landing pad of
//     its own (-fnon-call-exceptions), which may come between any two instructions. Traced code
//     alone enters it if its address is nowhere taken (in code, data, relocations, dynamic symbols;
//     as it is, with a tag, or as a distance from the word itself, from its table, from a label
//     amid code that is named with its table, or from the global offset table), if no routine that
//     is left out calls it, be it from code that control flow is not known to reach, and if it is
//     not main. Its one probe-free route is then implied by its caller's. Every other routine makes
//     an event between its entry and its end, and one into whose landing pads faults lead before
//     anything in it faults.
//  2. Chains of callers. The call site of a new activation is known by the chain of return
//     addresses up to the first caller that has certainly made an event before the call, not by one
//     address: callers without an event lie between.
//  3. No circles. A circle of calls and tail jumps that can run without an event is broken: where
//     that is cheapest, a routine's calls on the circle, or its entry, carry probes. A routine that
//     tail jumps alone can lead back to itself is none whose activations may end without an event.
//     Nor may the stack grow along a circle of tail jumps and of calls made before the caller's
//     first event. At most MaxProbeFreeCallers such callers come in a row, for a hit follows them
//     all; and at most MaxProbeFreeJumps tail jumps that come before their routine's first event.
//  4. Known frames. Where the size of the frame is not known at a call of traced code (alloca), an
//     event comes before the call: the chain is not followed through it. It comes after the last
//     call that may have led to another activation of the routine, for either might make the call.
//  5. Other entrances. What comes otherwise than by a jump, a call or a return has a probe of its
//     own: landing pads, each entry of a routine that has several, and both the call of setjmp and
//     its like and what follows it; and so has a call of external code that may not return (throw,
//     longjmp, exit). Where a call of a traced routine may end by an exception or a second return
//     that has passed through it, no place that this leads to is reached by an ordinary probe-free
//     route as well.
//  6. External calls. External code is entered by a witness, if the call or the jump is direct. An
//     indirect call, which may reach it, is one too, unless an event comes before it in its
//     activation, and what is called back after any event can come from one such call alone. After
//     either kind of call an event comes before the next indirect call that is no witness, and
//     before the end of an activation that external code may have begun. Where what is called back
//     may come from a call or, after the routine's end without another event, from its caller, the
//     routine is one that MayLeaveCallOpen. Functions that are known to do nothing of the kind
//     (strcmp, memcpy ...: see Imports.IsHarmless) and routines that call nothing are not taken for
//     external code.
//  7. Tail jumps. Whoever is tail-jumped to returns to the jumper's caller, through routines
//     without an event too: if that may be external code, rule 1 holds for the one jumped to as for
//     the jumper. An indirect tail jump may lead to any routine.
//  8. Switches. The way of a switch is known by the index at its bounds check, which is captured
//     there, if nothing parts that from the jump; else by events at the targets that have one way
//     in, or by the jump itself, single-stepped.
//  9. Left out. What cannot be made sound is left out, and what calls it is planned anew. Package
//     verify proves what remains.
//  10. Captured places. The event of a conditional jump may have the value of a place as well: the
//     low half of a general register, or memory in the frame. Until the next event of the
//     activation it decides the jumps whose outcome is a function of that place alone, as long as
//     no probe-free route from the event to them passes a call, or what writes the register, or a
//     store but to other places of the frame. For the latter the routine takes no address in its
//     frame, so that no callee, signal handler or thread has one; a handler that changes
//     registers, or the frame by way of them, in what it interrupted (its ucontext) is not
//     foreseen. Other ways that part behind such an event never meet again.
//  11. Same activation. Where no call and no end of the activation can come before its next event,
//     that event is taken to be of the same activation if routine and frame address are, and its
//     return address is not read again (Site.SameActivation). A signal handler that is not traced
//     and leaves by a jump for external code, which enters the routine anew in the same place, is
//     not foreseen.
//  12. Restarts. External code may catch what is thrown or jumps out of an activation that such
//     code has begun, and begin another in the same place, with the same return address. So no
//     block is come to without an event both from an entry and from where external code has come
//     back, by a call's return or to a landing pad, or from an event behind which it may have been
//     called without another; and an event comes before a routine is called that MayLeaveCallOpen.
//     That holds for what external code enters, and for what is called or jumped to from there
//     before an event.
//  13. Counted loops. A loop of one block may have no probe if a register that it adds a constant
//     to counts its rounds. Where it ends as soon as that register equals what the loop leaves
//     alone, what registers hold before decides how many there are: a constant does, or the last
//     event before the loop in the activation captures it. Else that event captures the register
//     and so does the next one behind the loop, before which the activation neither calls nor
//     ends. How far a loop has come when a signal interrupts it, or the thread dies in it, is
//     known by the registers that the kernel has saved then. A handler that changes them is not
//     foreseen.
//  14. Only callers. A routine that traced code alone enters (rule 1), by one call and no jump,
//     always returns behind that call: its return address is not read (Site.Caller, Call.Caller).
//  15. Next calls. After an event an activation may have one call that it can make before its next
//     event, and no way to end before it: no other call but of what is Harmless lies on any
//     probe-free route from the event, those behind the call included if what it calls may return
//     without an event. If the thread's next event is then of an activation whose frame begins
//     where that call leaves the stack pointer, it is this call that has begun it, for whatever
//     else runs before has its frame further in; and its return address is not read
//     (Site.NextCall). Where a signal's handler comes in between, which may lie anywhere, it is. An
//     event of the caller always comes before that call, so that the chain of rule 2 ends with it.
package plan
