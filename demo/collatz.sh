#!/bin/bash
# Looks for the start with the longest Collatz sequence, without end: something for bash to do.
longest=0
for ((start = 1; ; start++)); do
	n=$start steps=0
	while ((n != 1)); do
		if ((n % 2)); then
			n=$((3 * n + 1))
		else
			n=$((n / 2))
		fi
		steps=$((steps + 1))
	done
	if ((steps > longest)); then
		longest=$steps
		echo "$start takes $steps steps" >/dev/null
	fi
done
