// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"io"
	"log"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

// received has all spans that came to the collector's own OTLP receiver until standard input ended. It says "ready" on
// standard error when it listens.
func received(address string) ptrace.Traces {
	all := ptrace.NewTraces()
	var lock sync.Mutex
	next, err := consumer.NewTraces(func(_ context.Context, traces ptrace.Traces) error {
		lock.Lock()
		defer lock.Unlock()
		traces.ResourceSpans().MoveAndAppendTo(all.ResourceSpans())
		return nil
	}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	if err != nil {
		log.Fatal(err)
	}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	config.GRPC = configoptional.None[configgrpc.ServerConfig]()
	http := config.HTTP.GetOrInsertDefault()
	http.ServerConfig.Endpoint = address
	ctx := context.Background()
	receiver, err := factory.CreateTraces(ctx, receivertest.NewNopSettings(factory.Type()), config, next)
	if err != nil {
		log.Fatal(err)
	}
	if err := receiver.Start(ctx, componenttest.NewNopHost()); err != nil {
		log.Fatal(err)
	}
	os.Stderr.WriteString("ready\n")
	io.Copy(io.Discard, os.Stdin)
	if err := receiver.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	return all
}
