package xmldoc_test

import (
	"os"

	"understudy/kit/xmldoc"
)

func ExampleWriter() {
	w := xmldoc.New(os.Stdout, xmldoc.Options{})
	w.Open("calls")
	w.AddAttr("page", "1")
	w.WriteElement("to", "Anna & Bert")
	_ = w.End()
	// Output: <calls page="1"><to>Anna &amp; Bert</to></calls>
}

func ExampleUpdate() {
	u := xmldoc.NewUpdate(os.Stdout, xmldoc.Options{})
	u.BeginDoc()
	u.AddField("id", "CA1")
	_ = u.End()
	// Output: <?xml version="1.0" encoding="UTF-8"?><add><doc><field name="id">CA1</field></doc></add>
}
