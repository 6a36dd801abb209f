package io.idempotence.spring.method;

import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import org.springframework.aop.ClassFilter;
import org.springframework.aop.support.AopUtils;
import org.springframework.aop.support.DefaultPointcutAdvisor;
import org.springframework.aop.support.StaticMethodMatcherPointcut;
import org.springframework.core.Ordered;

/**
 * The advisor that applies {@code @Idempotent} to bean methods. It is outside of transactions: the result is recorded after the
 * commit, and a duplicate begins no transaction.
 */
final class IdempotentAdvisor extends DefaultPointcutAdvisor {
    private static final long serialVersionUID = 1L;

    IdempotentAdvisor(BeanOperations operations, IdempotentInterceptor interceptor) {
        super(new Annotated(operations), interceptor);
        setOrder(Ordered.LOWEST_PRECEDENCE - 1_000);
    }

    private static final class Annotated extends StaticMethodMatcherPointcut {
        Annotated(BeanOperations operations) {
            ClassFilter candidates = type -> !Proxy.isProxyClass(type) && operations.isAnnotated(type);
            setClassFilter(candidates);
        }

        @Override
        public boolean matches(Method method, Class<?> targetClass) {
            return BeanOperations.covers(AopUtils.getMostSpecificMethod(method, targetClass), targetClass);
        }
    }
}
