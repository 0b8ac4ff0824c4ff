


































































































unsigned longest_match(const bytes &text, unsigned at, unsigned from)
{



	return best;




	for (unsigned n = from; n < at; n++) {
		unsigned k = 0;
		while (text[n + k] == text[at + k])
			k++;
		if (k > best)
			best = k;
		if (k >= enough)
			break;
	}
}
