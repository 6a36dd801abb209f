package io.idempotence.client.feign;

import static io.idempotence.client.IdempotenceClientEvent.Result.SUCCEEDED;
import static io.idempotence.client.feign.AsyncCalls.get;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.AsyncClient;
import feign.AsyncFeign;
import feign.Client;
import feign.MethodInfo;
import feign.RequestLine;
import io.idempotence.client.feign.TestServer.Reply;
import java.util.HashSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import kotlin.coroutines.Continuation;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Tests of which methods return a future. */
class AsyncMethodsTest extends FeignTestBase {
    @RegisterExtension
    private final AsyncCalls async = new AsyncCalls(this);

    interface Base<T> {
        @RequestLine("POST /call")
        T call();
    }

    interface Inheriting extends Base<CompletableFuture<String>> {}

    interface Undeclared {
        @RequestLine("POST /call")
        Object call();
    }

    /** A method type like that of Feign's KotlinMethodInfo: the type that the method declares is not the one that it returns. */
    private static final class FutureOfString extends MethodInfo {
        FutureOfString() {
            super(String.class, true);
        }
    }

    private AsyncFeign.AsyncBuilder<Object> installed() {
        return IdempotentFeign.install(
                AsyncFeign.builder().client(new AsyncClient.Default<>(new Client.Default(null, null), async.threads)),
                fast().build());
    }

    /** The method was taken for a synchronous one: its next attempt did not await the one before. */
    @Test
    void futureThatIsATypeArgumentOfTheInheritedInterfaceIsOne() throws Exception {
        server.respond(Reply.status(503), Reply.status(503));
        Inheriting orders = installed().target(Inheriting.class, server.url());
        assertThat(get(orders.call())).isEqualTo("ok");
        assertThat(server.requests()).hasSize(3);
        assertThat(new HashSet<>(server.ids())).hasSize(1);
        assertEnd(SUCCEEDED, 3);
    }

    @Test
    void methodInfoResolverOfTheBuilderDecidesWhatIsAFuture() throws Exception {
        server.respond(Reply.status(503), Reply.status(503));
        Undeclared orders = installed()
                .methodInfoResolver((type, method) -> new FutureOfString())
                .target(Undeclared.class, server.url());
        assertThat(get((CompletionStage<?>) orders.call())).isEqualTo("ok");
        assertThat(server.requests()).hasSize(3);
        assertThat(new HashSet<>(server.ids())).hasSize(1);
        assertEnd(SUCCEEDED, 3);
    }

    interface Suspending {
        @RequestLine("POST /call")
        Object call(String body, Continuation<String> continuation);
    }

    @Test
    void kotlinSuspendFunctionIsRefusedWhenTheClientIsBuilt() {
        AsyncFeign.AsyncBuilder<Object> builder =
                installed().methodInfoResolver((type, method) -> new FutureOfString());
        assertThatThrownBy(() -> builder.target(Suspending.class, server.url()))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("Suspending#call")
                .hasMessageContaining("CompletableFuture");
    }
}
