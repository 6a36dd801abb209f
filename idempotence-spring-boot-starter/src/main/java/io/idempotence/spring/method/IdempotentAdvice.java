package io.idempotence.spring.method;

import java.util.Arrays;
import org.aopalliance.intercept.MethodInterceptor;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.Advised;

/** The interceptor of {@code @Idempotent} on bean methods, as proxies show it. */
interface IdempotentAdvice extends MethodInterceptor {
    /** Whether an object is a proxy with this interceptor. */
    static boolean isIn(@Nullable Object bean) {
        return bean instanceof Advised proxy
                && Arrays.stream(proxy.getAdvisors())
                        .anyMatch(advisor -> advisor.getAdvice() instanceof IdempotentAdvice);
    }
}
