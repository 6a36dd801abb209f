package io.idempotence.spring.server;

import io.idempotence.server.Idempotence;
import org.springframework.context.ApplicationListener;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.event.ContextClosedEvent;

/**
 * The lifecycle bean that closes each {@link Idempotence} after the web server and before the connections to Redis, which Spring Data
 * stops before any bean is destroyed. Completions that still wait for the storage are then written. A context that is only paused or
 * stopped keeps it open.
 */
final class ServerShutdown implements SmartLifecycle, ApplicationListener<ContextClosedEvent> {
    /** Above that of connection factories (0), below those of web servers and message listeners. */
    private static final int PHASE = 1024;

    private final ConfigurableApplicationContext context;
    private final ServerStart start;
    private volatile boolean running;
    private volatile boolean closing;

    ServerShutdown(ConfigurableApplicationContext context, ServerStart start) {
        this.context = context;
        this.start = start;
    }

    @Override
    public void onApplicationEvent(ContextClosedEvent event) {
        if (event.getApplicationContext() == context) {
            closing = true;
        }
    }

    @Override
    public void start() {
        running = true;
    }

    @Override
    public void stop() {
        running = false;
        if (closing) {
            start.cancel();
            for (String name : context.getBeanNamesForType(Idempotence.class, false, false)) {
                if (context.getBeanFactory().containsSingleton(name)) {
                    context.getBean(name, Idempotence.class).close();
                }
            }
        }
    }

    @Override
    public boolean isRunning() {
        return running;
    }

    @Override
    public int getPhase() {
        return PHASE;
    }
}
