// What tests see of cutting.

package tokenizer

// Looks is how often the cutter has looked at a character beyond ASCII since
// its text was set.
func (c *Cutter) Looks() int { return c.looks }
