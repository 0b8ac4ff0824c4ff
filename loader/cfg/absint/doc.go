// Package absint interprets x86-64 instructions abstractly, by their x86.Effects: it knows no
// blocks, and no routine but the one whose instructions it is given in turn. There are three
// domains, for there are three questions, and a value that answers one is none to another:
//
//   - Machine: what an indirect jump's target is made of. It has memory, tables, bounds of indexes,
//     and symbols for what is not known; values are sums of a symbol and a displacement.
//   - Registers: by which Linear function of what registers held at one point they hold what they
//     do at another, forwards and backwards, and through the rounds of a loop (Counter).
//   - Condition: what of one place a conditional jump asks, by steps that can be run again.
//
// What is not modelled becomes unknown, by what Effects say that an instruction may write.
package absint
