// This file checks the addresses to which a webhook may connect. Each connection is checked after its host name is
// resolved, because names cannot be trusted.

// Package webhook sends signed messages to receivers that are not trusted.
package webhook

import (
	"fmt"
	"net/netip"
	"syscall"
)

// Guard returns a function for net.Dialer.Control that refuses addresses that are not public. If private is true,
// it permits addresses of private networks and of this machine.
func Guard(private bool) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil || network != "tcp4" && network != "tcp6" {
			return fmt.Errorf("address not permitted: %s", network)
		}
		if why := forbiddenReason(at.Addr(), private); why != "" {
			return fmt.Errorf("address not permitted: it is %s", why)
		}
		return nil
	}
}

// addressBlock is a range of addresses with its purpose.
type addressBlock struct {
	prefix  netip.Prefix
	what    string
	private bool // whether the range is permitted together with private addresses
}

// blocks are the special-purpose addresses of IANA's registries (RFC 6890), and the metadata addresses of clouds.
// The first block that contains an address counts.
var blocks = [...]addressBlock{
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback", true},
	{netip.MustParsePrefix("10.0.0.0/8"), "private", true},
	{netip.MustParsePrefix("172.16.0.0/12"), "private", true},
	{netip.MustParsePrefix("192.168.0.0/16"), "private", true},
	{netip.MustParsePrefix("100.100.100.200/32"), "metadata", false}, // before the carrier's range, which contains this address
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by a carrier", true},
	{netip.MustParsePrefix("0.0.0.0/8"), "this network", false},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local or metadata", false},
	{netip.MustParsePrefix("168.63.129.16/32"), "metadata", false},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved", false},
	{netip.MustParsePrefix("192.0.2.0/24"), "reserved for documentation", false},
	{netip.MustParsePrefix("192.88.99.0/24"), "a relay address", false},
	{netip.MustParsePrefix("198.18.0.0/15"), "reserved for benchmarks", false},
	{netip.MustParsePrefix("198.51.100.0/24"), "reserved for documentation", false},
	{netip.MustParsePrefix("203.0.113.0/24"), "reserved for documentation", false},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast", false},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved", false},
	{netip.MustParsePrefix("::1/128"), "loopback", true},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "metadata", false},
	{netip.MustParsePrefix("fc00::/7"), "private", true},
	{netip.MustParsePrefix("2001::/23"), "reserved", false}, // Teredo, ORCHID and benchmarks
	{netip.MustParsePrefix("2001:db8::/32"), "reserved for documentation", false},
	{netip.MustParsePrefix("2002::/16"), "a relay address", false}, // the range of 6to4
	{netip.MustParsePrefix("3fff::/20"), "reserved for documentation", false},
	{netip.MustParsePrefix("2000::/3"), "", false}, // the rest of this range is public
}

// nat64 are the IPv6 addresses of IPv4 hosts behind NAT64 (RFC 6052); the IPv4 address is the last 32 bits.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// forbiddenReason returns why an address is not permitted, or "" if it is. Of IPv6, only global unicast addresses
// (2000::/3) are known to be public.
func forbiddenReason(a netip.Addr, private bool) string {
	a = a.Unmap()
	if a.Zone() != "" {
		return "link-local"
	}
	if nat64.Contains(a) {
		b := a.As16()
		return forbiddenReason(netip.AddrFrom4([4]byte(b[12:])), false)
	}
	for i := range blocks {
		if b := &blocks[i]; b.prefix.Contains(a) {
			if b.private && private {
				return ""
			}
			return b.what
		}
	}
	if !a.Is4() {
		return "not a public address"
	}
	return ""
}
