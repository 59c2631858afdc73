package xmldoc_test

import (
	"os"

	"understudy/kit/xmldoc"
)

func ExampleWriter() {
	w := xmldoc.New(os.Stdout, xmldoc.Options{})
	w.Open("calls")
	w.Attr("page", "1")
	w.Element("to", "Anna & Bert")
	_ = w.End()
	// Output: <calls page="1"><to>Anna &amp; Bert</to></calls>
}

func ExampleUpdate() {
	u := xmldoc.NewUpdate(os.Stdout, xmldoc.Options{})
	u.Doc()
	u.Field("id", "CA1")
	_ = u.End()
	// Output: <?xml version="1.0" encoding="UTF-8"?><add><doc><field name="id">CA1</field></doc></add>
}
