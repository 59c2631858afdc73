// Package understudy is the cast list of Understudy, a fast, permissioned,
// always-on stand-in for slow APIs: the nouns its rooms exchange.
//
// Requests fall from a face (proxy, viewer) through one gate (access) to the
// mirror, which answers from the store or goes upstream; changes climb back as
// rows. The rooms know these nouns and not each other. The package imports the
// standard library only and holds no state that changes.
package understudy
