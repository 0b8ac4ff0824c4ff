'use strict';
const readline = require('readline');

class Account {
	constructor(name, balance) { this.name = name; this.balance = balance; }
	interest(rate) { this.balance += Math.floor(this.balance * rate / 100); return this.balance; }
}

function work(n) {
	const accounts = [];
	for (let i = 0; i < 200; i++)
		accounts.push(new Account(`user${i * n % 97}@host${i % 7}.org`, i * 31 % 101));
	accounts.sort((a, b) => a.balance - b.balance || (a.name < b.name ? -1 : 1));
	const totals = new Map();
	for (const a of accounts) {
		const m = /^(\w+)@(\w+)\.org$/.exec(a.name);
		totals.set(m[2], (totals.get(m[2]) || 0) + a.interest(n % 5));
	}
	const text = JSON.stringify([...totals]);
	let sum = 0;
	for (const [, v] of JSON.parse(text)) sum += v;
	return sum;
}

readline.createInterface({ input: process.stdin }).on('line',
	line => process.stdout.write(work(+line) + '\n'));
