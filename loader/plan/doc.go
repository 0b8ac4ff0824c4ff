// Package plan says which instructions of a program carry a probe, and what the words of the probes
// mean: they determine every path.
//
// A block with a probe is a witness. Between two words of an activation there is exactly one silent
// way, an activation is silent only where its callers imply what it did, and a word separates any
// two calls of code that is not observed. What cannot be made so is left out, with its reason.
//
// The package holds the result alone. Package planner finds it, package verify proves it, and those
// that attach and decode read it. It knows nothing of the kernel.
//
// # The rules of silence
//
// What makes silence sound is numbered, and the numbers are used throughout. Code that is not
// observed is the other images, be they observed by plans of their own, the kernel, and the
// routines of the program that are left out; it may call back, throw, and return twice.
//
//  1. An activation may end without a word only in a routine that observed code alone enters, by
//     direct calls and jumps: its address is nowhere taken (in code, data, relocations, dynamic
//     symbols; as it is, with a tag, or as a distance from the word itself, from its table, from a
//     label amid code that is named with its table, or from the global offset table), no routine
//     that is left out calls it, be it from code that control flow is not known to reach, it is not
//     main, and no fault leads to a landing pad of its own (-fnon-call-exceptions), which may come
//     amid its silence.
//     Its one silent way is then implied by its caller's. Every other routine speaks between its
//     entry and its end, and one into whose landing pads faults lead before anything in it faults.
//  2. The call site of a new activation is known by the chain of return addresses up to the first
//     caller that is certain to have made a word before the call, not by one address: silent
//     callers lie between.
//  3. A circle of calls and tail jumps that can run without a word is broken: where that is
//     cheapest, a routine's calls on the circle, or its entry, carry probes. A routine that tail
//     jumps alone can lead back to itself is none that may be silent. Nor may
//     the stack grow along a circle of tail jumps and of calls made before the caller's first word. At
//     most MaxSilentCallers such callers come in a row, for a hit follows them all;
//     and at most MaxSilentJumps tail jumps that come before their routine's first word.
//  4. Where the size of the frame is not known at a call of observed code (alloca), a word comes
//     before the call: the chain is not followed through it. It comes after the last call that may
//     have led to another activation of the routine, for either might make the call.
//  5. What comes otherwise than by a jump, a call or a return speaks for itself: landing pads, each
//     entry of a routine that has several, and both the call of setjmp and its like and what
//     follows it; and so does a call of code that is not observed and may not return (throw,
//     longjmp, exit). Where a call of an observed routine may end by an exception or a second
//     return that has passed through it, no place that this leads to is reached by ordinary silence
//     as well.
//  6. Code that is not observed is entered by a witness, if the call or the jump is direct. An
//     indirect call, which may reach it, is one too, unless a word comes before it in its
//     activation, and what is called back after any word can come from one such call alone. After
//     either kind of call a word comes before the next indirect call that is no witness, and before
//     the end of an activation that code which is not observed may have begun. Where what is called
//     back may come from a call or, after the routine's silent end, from its caller, the routine is
//     one that MayLeaveOpen. Functions that are known to do nothing of the kind (strcmp, memcpy
//     ...: see Imports.IsHarmless) and routines that call nothing are not taken for such code.
//  7. Whoever is tail-jumped to returns to the jumper's caller, through silent routines too: if
//     that may be code that is not observed, rule 1 holds for the one jumped to as for the jumper.
//     An indirect tail jump may lead to any routine.
//  8. The way that a switch takes is told by the index at its bounds check, if nothing parts that
//     from the jump; else by words at the targets that have one way in, or by the jump itself,
//     single-stepped.
//  9. What cannot be made sound is left out, and what calls it is planned anew. Package verify
//     proves what remains.
//  10. The word of a conditional jump may carry the value of a place as well: the low half of a
//     general register, or memory in the frame. Until the next word of the activation it tells the
//     way of the jumps whose outcome is a function of that place alone, as long as no silent way
//     from the word to them passes a call, or what writes the register, or a store but to other
//     places of the frame. For the latter the routine takes no address in its frame, so that no
//     callee, signal handler or thread has one; a handler that changes registers, or the frame by
//     way of them, in what it interrupted (its ucontext) is not foreseen. Other ways that part
//     behind such a word never meet again.
//  11. Where no call and no end of the activation can come before its next word, that word is taken
//     to be of the same activation if routine and frame address are, and its return address is not
//     read again (Site.Stays). A signal handler that is not observed and leaves by a jump for code
//     that is not observed either, which enters the routine anew in the same place, is not
//     foreseen.
//  12. Code that is not observed may catch what is thrown or jumps out of an activation that such
//     code has begun, and begin another in the same place, with the same return address. So no
//     block is come to in silence both from an entry and from where such code has come back, by a
//     call's return or to a landing pad, or from a word behind which it may have been called
//     without another; and a word comes before a routine is called that MayLeaveOpen. That holds
//     for what such code enters, and for what is called or jumped to from there before a word.
//  13. A loop of one block may run without a word if a register that it adds a constant to counts
//     its rounds. Where it ends as soon as that register equals what the loop leaves alone, what
//     the registers hold before tells how many there are: a constant does, or the last word before
//     the loop in the activation carries it. Else that word carries the register and so does the
//     next one behind the loop, before which the activation neither calls nor ends. How far a loop
//     has come when a signal interrupts it, or the thread dies in it, the registers tell that the
//     kernel has saved then. A handler that changes them is not foreseen.
package plan
