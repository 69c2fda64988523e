package program

import (
	"fmt"
	"strings"

	"github.com/sluicehost/sluice/sdk/ggml"
)

// typeName is a ggml type in lower case.
func typeName(t uint32) string { return strings.ToLower(ggml.Type(t).String()) }

// bindingName is what a binding binds, as messages and the text form call it:
// a buffer or weight by its name (a later band as name#1), a table by its
// constant, a rope as rope:name.
func bindingName(plan *Plan, prog *Program, b *Binding) string {
	switch at := b.GetAt().(type) {
	case *Binding_Buffer:
		if uint64(at.Buffer) < uint64(len(prog.GetBuffers())) {
			return prog.GetBuffers()[at.Buffer].GetName()
		}
		return fmt.Sprintf("buffer %d", at.Buffer)
	case *Binding_Weight:
		i, band := uint64(at.Weight.GetWeight()), at.Weight.GetBand()
		if i >= uint64(len(plan.GetWeights())) {
			return fmt.Sprintf("weight %d", i)
		}
		if band > 0 {
			return fmt.Sprintf("%s#%d", plan.GetWeights()[i].GetName(), band)
		}
		return plan.GetWeights()[i].GetName()
	case *Binding_Bank:
		return "bank"
	case *Binding_Table:
		return at.Table.String()
	case *Binding_Rope:
		if uint64(at.Rope) < uint64(len(plan.GetRopes())) {
			return "rope:" + plan.GetRopes()[at.Rope].GetName()
		}
		return fmt.Sprintf("rope %d", at.Rope)
	}
	return "nothing"
}
