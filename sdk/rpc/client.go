package rpc

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/sluicehost/sluice/sdk/program"
)

// Fault is the error of a call that failed, as against one that was refused.
type Fault struct {
	Method string
	Code   codes.Code // as gRPC's; Unavailable where the connection broke, Aborted for a panic
	Text   string     // one line
}

func (f *Fault) Error() string { return f.Text }

// Unwrap gives the context's error where that ended the call.
func (f *Fault) Unwrap() error {
	switch f.Code {
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.Canceled:
		return context.Canceled
	}
	return nil
}

// client is a Plugin over the generated client.
type client struct{ grpc ArchitectureClient }

// NewClient is the Plugin that answers at c.
func NewClient(c ArchitectureClient) Plugin { return &client{c} }

func (c *client) Describe(ctx context.Context) (*DescribeReply, error) {
	reply, err := c.grpc.Describe(ctx, &DescribeRequest{})
	if err != nil {
		return nil, fault("Describe", err)
	}
	return reply, nil
}

func (c *client) Plan(ctx context.Context, h *program.Header) (*program.Plan, error) {
	req := &PlanRequest{Header: h}
	if err := sendable("Plan", req); err != nil {
		return nil, err
	}
	reply, err := c.grpc.Plan(ctx, req)
	if err != nil {
		return nil, fault("Plan", err)
	}
	if r := reply.GetRefusal(); r != nil {
		return nil, received(r)
	}
	if reply.GetPlan() == nil {
		return nil, &Fault{"Plan", codes.DataLoss, "Plan returned neither a plan nor a refusal"}
	}
	return reply.GetPlan(), nil
}

func (c *client) Encode(ctx context.Context, er *program.EncodeRequest) (*program.Program, error) {
	req := &EncodeRequest{Request: er}
	if err := sendable("Encode", req); err != nil {
		return nil, err
	}
	reply, err := c.grpc.Encode(ctx, req)
	if err != nil {
		return nil, fault("Encode", err)
	}
	if r := reply.GetRefusal(); r != nil {
		return nil, received(r)
	}
	if reply.GetProgram() == nil {
		return nil, &Fault{"Encode", codes.DataLoss, "Encode returned neither a program nor a refusal"}
	}
	return reply.GetProgram(), nil
}

// sendable tells a request of ours that can't travel from a reply that can't:
// gRPC reports both alike.
func sendable(method string, req proto.Message) error {
	b, err := proto.Marshal(req)
	if err != nil {
		return &Fault{method, codes.InvalidArgument, OneLine(fmt.Sprintf("the request of %s can't be marshalled: %v", method, err), maxText)}
	}
	if len(b) > MessageLimit {
		return &Fault{method, codes.InvalidArgument,
			fmt.Sprintf("the request of %s has %d bytes, the limit is %d", method, len(b), MessageLimit)}
	}
	return nil
}

func fault(method string, err error) error {
	s := status.Convert(err)
	f := &Fault{Method: method, Code: s.Code(), Text: OneLine(s.Message(), maxText)}
	switch f.Code {
	case codes.ResourceExhausted:
		f.Text = fmt.Sprintf("the reply of %s is larger than the limit of %d MiB", method, MessageLimit>>20)
	case codes.Internal: // gRPC's word for bytes that are no message
		f.Text = fmt.Sprintf("the reply of %s can't be read: %s", method, f.Text)
	}
	return f
}
