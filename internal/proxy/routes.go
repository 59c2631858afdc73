// This file lists the paths that the proxy serves, for tests that request all of them.

package proxy

// Routes returns the patterns that this frontend serves: the methods and path templates of the spec, then
// Understudy's own paths.
func (p *Proxy) Routes() []string {
	var all []string
	for _, k := range p.o.Source.Spec.Kinds {
		for _, l := range k.Lists {
			all = append(all, "GET "+l.Path)
		}
		for _, in := range k.Instances {
			all = append(all, "GET "+in.Path)
		}
		for _, m := range k.Media {
			all = append(all, "GET "+m.Path)
		}
	}
	if l := p.o.Source.Spec.Limits; l.Path != "" {
		all = append(all, "GET "+l.Path)
	}
	return append(all, "GET /-/health", "GET /-/ready", "POST "+batchPath)
}
