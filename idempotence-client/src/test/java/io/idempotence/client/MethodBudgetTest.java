package io.idempotence.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import feign.Feign;
import feign.RequestLine;
import feign.Target.HardCodedTarget;
import io.idempotence.client.feign.IdempotentFeign;
import io.idempotence.client.okhttp.IdempotentOkHttp;
import java.io.IOException;
import java.util.Map;
import java.util.Properties;
import okhttp3.OkHttpClient;
import okhttp3.Request;
import okhttp3.RequestBody;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;

/** A budget of a method is refused. In a variable, what is a method shows only when a client has one of that name. */
class MethodBudgetTest {
    private static final String VARIABLE = "IDEMPOTENCE_CLIENT_CLIENTS_MY_SHOP_";

    private interface Shop {
        @RequestLine("POST /")
        String buy();
    }

    private static IdempotenceClientConfig budgetOf(String methodOfMyShop) {
        return ConfigLoader.load(
                ClassLoader.getPlatformClassLoader(),
                new Properties(),
                Map.of(VARIABLE + methodOfMyShop + "_BUDGET_CAPACITY", "7"));
    }

    private static void assertRefused(String methodOfMyShop, ThrowingCallable use) {
        assertThatThrownBy(use)
                .isInstanceOfSatisfying(IdempotenceConfigException.class, e -> {
                    assertThat(e.key()).isEqualTo(VARIABLE + methodOfMyShop + "_BUDGET_CAPACITY");
                    assertThat(e.source()).isEqualTo("environment variable");
                })
                .hasMessageContaining("belongs to a target")
                .hasMessageContaining("set " + VARIABLE + "BUDGET_CAPACITY");
    }

    @Test
    void isRefusedWhereAClientOfFeignIsMade() {
        Feign.Builder builder = IdempotentFeign.install(Feign.builder(), budgetOf("BUY"));
        assertRefused("BUY", () -> builder.target(new HardCodedTarget<>(Shop.class, "my-shop", "http://127.0.0.1")));
    }

    @Test
    void isRefusedWhereAClientOfOkHttpIsMadeUnderItsName() {
        OkHttpClient.Builder builder = new OkHttpClient.Builder();
        assertRefused("POST", () -> IdempotentOkHttp.install(builder, budgetOf("POST"), "my-shop"));
    }

    /** OkHttp would end a thread of its own on anything but an I/O failure. */
    @Test
    void isRefusedAtTheCallWhereAClientOfOkHttpIsNamedAfterTheHost() {
        OkHttpClient client = IdempotentOkHttp.install(new OkHttpClient.Builder(), budgetOf("POST"))
                .addInterceptor(chain -> {
                    throw new AssertionError("sent");
                })
                .build();
        Request request = new Request.Builder()
                .url("http://my.shop/")
                .post(RequestBody.create(new byte[0]))
                .build();
        assertThatThrownBy(() -> client.newCall(request).execute())
                .isInstanceOf(IOException.class)
                .satisfies(e -> assertRefused("POST", () -> {
                    throw e.getCause();
                }));
    }

    @Test
    void ofAClientThatIsSpelledAsAMethodWouldBeIsItsBudget() {
        IdempotenceClientConfig config = budgetOf("BUY");
        assertThat(config.budget("my-shop-buy").available()).isEqualTo(7);
        assertThat(config.budget("my-shop").available()).isEqualTo(500);
        assertThatCode(() -> config.forMethod("my-shop", "sell")).doesNotThrowAnyException();
    }
}
