package attach

import (
	"wpptrace/bpf"
	"wpptrace/loader/plan"
)

// KernelSite is a site of a plan of one image as the kernel has it, for who simulates that.
func KernelSite(p *plan.Plan, s *plan.Site) bpf.TracerSite {
	return siteOf(s, func(ra uint64) plan.Call { return p.Calls[ra] })
}
