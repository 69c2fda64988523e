package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// loopback is the generated client without a connection: it marshals as gRPC
// does, holds to the same limit and returns the same errors.
type loopback struct{ server ArchitectureServer }

func (l *loopback) Describe(ctx context.Context, in *DescribeRequest, _ ...grpc.CallOption) (*DescribeReply, error) {
	reply := &DescribeReply{}
	return reply, carry(ctx, in, &DescribeRequest{}, l.server.Describe, reply)
}

func (l *loopback) Plan(ctx context.Context, in *PlanRequest, _ ...grpc.CallOption) (*PlanReply, error) {
	reply := &PlanReply{}
	return reply, carry(ctx, in, &PlanRequest{}, l.server.Plan, reply)
}

func (l *loopback) Encode(ctx context.Context, in *EncodeRequest, _ ...grpc.CallOption) (*EncodeReply, error) {
	reply := &EncodeReply{}
	return reply, carry(ctx, in, &EncodeRequest{}, l.server.Encode, reply)
}

// carry copies in to req, calls, and copies the answer to reply. Code that
// ignores its context is left behind when that ends, as a process would be.
func carry[Q, R proto.Message](ctx context.Context, in, req Q, call func(context.Context, Q) (R, error), reply R) error {
	if err := through(in, req); err != nil {
		return err
	}
	answer := make(chan error, 1)
	go func() {
		r, err := call(ctx, req)
		if err == nil {
			err = through(r, reply)
		}
		answer <- err
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// through copies a message by way of its bytes.
func through(from, to proto.Message) error {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(from)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if len(b) > MessageLimit {
		return status.Errorf(codes.ResourceExhausted, "%d bytes", len(b))
	}
	if err := proto.Unmarshal(b, to); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}
