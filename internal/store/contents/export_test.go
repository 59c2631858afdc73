package contents

// SetPartBytes sets the size of the parts that a sends.
func (a *Archive) SetPartBytes(n int) { a.partBytes = n }
