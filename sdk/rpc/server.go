package rpc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluicehost/sluice/sdk/program"
)

// server answers the gRPC service with a Plugin. A panic in the author's code
// fails the one call; the process lives on.
type server struct {
	UnimplementedArchitectureServer
	name   string
	plugin Plugin
	log    hclog.Logger
}

// NewServer answers the gRPC service with p; name stands in its errors, and
// log gets the stack of a panic of p's.
func NewServer(name string, p Plugin, log hclog.Logger) ArchitectureServer {
	return &server{name: name, plugin: p, log: log}
}

func (s *server) Describe(ctx context.Context, _ *DescribeRequest) (reply *DescribeReply, err error) {
	defer s.recovered("Describe", &err)
	reply, err = s.plugin.Describe(ctx)
	if err != nil {
		return nil, s.failed("Describe", err)
	}
	if reply == nil {
		return nil, s.empty("Describe", "description")
	}
	return reply, nil
}

func (s *server) Plan(ctx context.Context, req *PlanRequest) (reply *PlanReply, err error) {
	defer s.recovered("Plan", &err)
	plan, err := s.plugin.Plan(ctx, req.GetHeader())
	if r := refusal(err); r != nil {
		return &PlanReply{Is: &PlanReply_Refusal{Refusal: r}}, nil
	}
	if err != nil {
		return nil, s.failed("Plan", err)
	}
	if plan == nil {
		return nil, s.empty("Plan", "plan")
	}
	return &PlanReply{Is: &PlanReply_Plan{Plan: plan}}, nil
}

func (s *server) Encode(ctx context.Context, req *EncodeRequest) (reply *EncodeReply, err error) {
	defer s.recovered("Encode", &err)
	prog, err := s.plugin.Encode(ctx, req.GetRequest())
	if r := refusal(err); r != nil {
		return &EncodeReply{Is: &EncodeReply_Refusal{Refusal: r}}, nil
	}
	if err != nil {
		return nil, s.failed("Encode", err)
	}
	if prog == nil {
		return nil, s.empty("Encode", "program")
	}
	return &EncodeReply{Is: &EncodeReply_Program{Program: prog}}, nil
}

func refusal(err error) *program.Refusal {
	var r *Refusal
	if errors.As(err, &r) {
		return &program.Refusal{Reasons: r.Reasons}
	}
	return nil
}

func (s *server) failed(method string, err error) error {
	return status.Error(codes.Unknown, OneLine(fmt.Sprintf("%s: %v", method, err), maxText))
}

func (s *server) empty(method, what string) error {
	return status.Errorf(codes.DataLoss, "%s returned neither a %s nor a refusal", method, what)
}

// recovered is deferred around the author's code.
func (s *server) recovered(method string, err *error) {
	v := recover()
	if v == nil {
		return
	}
	text := OneLine(fmt.Sprint(v), maxText)
	s.log.Error("panic in "+method, "panic", text, "stack", string(debug.Stack()))
	*err = status.Errorf(codes.Aborted, "plugin %s panicked in %s: %s", s.name, method, text)
}
