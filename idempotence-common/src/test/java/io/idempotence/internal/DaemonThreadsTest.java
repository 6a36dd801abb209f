package io.idempotence.internal;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URL;
import java.net.URLClassLoader;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class DaemonThreadsTest {
    private static final InheritableThreadLocal<String> USER = new InheritableThreadLocal<>();

    @Test
    @DisplayName("A daemon does not keep the thread-locals of the request that started it")
    void aDaemonInheritsNoThreadLocals() throws Exception {
        USER.set("ann");
        try {
            FutureTask<String> user = new FutureTask<>(USER::get);
            Thread thread = DaemonThreads.named("idempotence-test").newThread(user);
            thread.start();
            assertThat(user.get()).isNull();
            assertThat(thread.isDaemon()).isTrue();
            assertThat(thread.getName()).isEqualTo("idempotence-test");
        } finally {
            USER.remove();
        }
    }

    @Test
    void aDaemonInheritsTheContextClassLoader() throws Exception {
        ClassLoader before = Thread.currentThread().getContextClassLoader();
        try (URLClassLoader application = new URLClassLoader(new URL[0])) {
            Thread.currentThread().setContextClassLoader(application);
            Thread thread = DaemonThreads.named("idempotence-test").newThread(() -> {});
            assertThat(thread.getContextClassLoader()).isSameAs(application);
        } finally {
            Thread.currentThread().setContextClassLoader(before);
        }
    }
}
