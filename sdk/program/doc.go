// Package program is the contract between the host and an architecture plugin:
// the messages of program.proto (a plan of a model's weights, and a program of
// GPU dispatches over them), what both sides may rely on, and ways to look at
// them. It runs nothing on a GPU, reads no file and knows no architecture.
//
//   - ValidatePlan and Validate say whether a message from a plugin may be used.
//   - Text writes one for people.
//   - Interpreter runs one in float64, by each kernel's Go reference (Ref, Call).
//   - ParseWGSL reads what a kernel declares; BufferBytes, Grid and Pick work
//     out the sizes, grids and variants of a step.
//
// Start at program.proto, whose comments explain every field, and then Validate.
package program
