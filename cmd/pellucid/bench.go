package main

type benchCmd struct {
	Scrub   benchScrubCmd   `cmd:"" help:"What scrubbing one field costs, beside memcpy and what libraries would do."`
	Corpora benchCorporaCmd `cmd:"" help:"What is left of attacks, and of benign text, in the corpora of the test data."`
}
