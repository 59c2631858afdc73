// Options: what is typed, for every part.

package main

import (
	"flag"
	"io"
	"time"
)

// options are the flags every part sees.
type options struct {
	bin     string        // the understudy binary
	quick   bool          // a smoke of every part: the figures mean nothing
	reader  time.Duration // how long the reader of the newest page reads
	results string        // folder of the results; "" = print only
	profile string        // folder of the CPU profiles; "" = not kept
	command string        // what was typed, for the results
}

// newFlags is an empty set of flags that explains itself on out.
func newFlags(name string, out io.Writer) *flag.FlagSet {
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(out)
	return fs
}
