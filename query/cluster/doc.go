// Package cluster says how sure a share is that was seen in some windows of a run, and how sure the
// difference of two such shares is.
//
// What a window shows hangs together: a program that does one thing does more of it in the next
// moment. So the windows, not the paths in them, are what was drawn: each is a cluster with a part,
// the cost of what is asked about, and a whole, the cost of all that ran in it. The share is the
// sum of the parts by the sum of the wholes, the ratio estimator (Cochran, Sampling Techniques, 3rd
// edition 1977, sections 6.3 and 9A.1). Its variance is that of the jackknife, which leaves out one
// window at a time and is rather too large than too small (Efron and Stein, The Jackknife Estimate
// of Variance, Annals of Statistics 9, 1981); intervals are of Student's t with as many degrees of
// freedom as there are windows, less one, where they are alike; where some have far more in them
// than others, or of what is asked about, as many as there would be of like ones (Kish, Survey
// Sampling, 1965, section 11.7). The difference of two shares is that of Welch (Biometrika 34,
// 1947), with the degrees of freedom that he and Satterthwaite give it.
//
// Among many differences some seem certain by chance. Significant keeps the share of such among
// those that it selects below a bound (Benjamini and Hochberg, Controlling the False Discovery
// Rate, Journal of the Royal Statistical Society B 57, 1995).
//
// A Factor is a ratio of two sums, by which a number is multiplied to estimate another: of what
// windows have seen and of how often some of it ran between them, how often it ran in all. Its
// errors are those of the logarithm, so that factors are multiplied.
//
// An interval is about the run that the windows are of: how much another run of the same program
// would differ is not in it. It supposes that windows open regardless of what the program does, and
// that one has little to do with the next.
package cluster
