package io.idempotence.spring.client;

import java.util.Arrays;
import java.util.Map;
import org.aopalliance.aop.Advice;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.Advisor;
import org.springframework.aop.framework.Advised;
import org.springframework.aop.framework.AopProxyUtils;
import org.springframework.aop.interceptor.AsyncExecutionInterceptor;
import org.springframework.aop.target.EmptyTargetSource;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.service.annotation.HttpExchange;

/**
 * The post-processor that installs the client half in beans that Boot's customizers do not reach: builders and templates that the
 * application makes itself, such as load-balanced ones, and the proxies of HTTP service clients, whose methods have names and annotations,
 * with their circuit breakers.
 */
final class ClientBeans implements BeanPostProcessor {
    private static final String DEFAULT_GROUP = "default";

    private final ObjectProvider<RestClientInstaller> installer;

    ClientBeans(ObjectProvider<RestClientInstaller> installer) {
        this.installer = installer;
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String beanName) {
        if (bean instanceof RestClient.Builder builder) {
            installer.getObject().install(builder);
        } else if (bean instanceof RestTemplate template) {
            installer.getObject().install(template);
        } else if (bean.getClass().getName().equals(HttpServiceGroups.BREAKERS)) {
            FallbackBreakers.replaceIn(bean);
        } else if (bean instanceof Advised outermost) {
            Advised proxy = innermost(outermost);
            if (isClient(proxy)) {
                Arrays.stream(proxy.getProxiedInterfaces())
                        .filter(ClientBeans::isHttpService)
                        .findFirst()
                        .ifPresent(type -> proxy.addAdvice(
                                place(proxy),
                                HttpServiceCall.advice(
                                        type, group(beanName, type), new UninstalledClient(installer)::sent)));
            }
        }
        return bean;
    }

    /** The innermost proxy. Aspects' proxies around it may make calls that do not belong to the client, such as those of a fallback. */
    private static Advised innermost(Advised outermost) {
        Advised proxy = outermost;
        while (AopProxyUtils.getSingletonTarget(proxy) instanceof Advised inner) {
            proxy = inner;
        }
        return proxy;
    }

    /** In front of all other advice, but behind that of {@code @Async}: the call is that of the thread which makes it. */
    private static int place(Advised proxy) {
        Advisor[] advisors = proxy.getAdvisors();
        int place = 0;
        for (int i = 0; i < advisors.length; i++) {
            if (advisors[i].getAdvice() instanceof AsyncExecutionInterceptor) {
                place = i + 1;
            }
        }
        return place;
    }

    /** A controller may implement the same interface. Its proxy has a target. */
    private static boolean isClient(Advised proxy) {
        return !proxy.isFrozen()
                && proxy.getTargetSource() == EmptyTargetSource.INSTANCE
                && Arrays.stream(proxy.getAdvisors()).map(Advisor::getAdvice).noneMatch(ClientBeans::isOverWebClient);
    }

    /** A {@code WebClient} has no client half. A {@code RestClient} that one of its filters calls does not belong to the proxy. */
    private static boolean isOverWebClient(Advice advice) {
        return SpringInternals.field(advice, "httpServiceMethods") instanceof Map<?, ?> methods
                && methods.values().stream()
                        .map(method -> SpringInternals.field(method, "responseFunction"))
                        .anyMatch(function -> function != null
                                && function.getClass().getSimpleName().equals("ReactorExchangeResponseFunction"));
    }

    private static boolean isHttpService(Class<?> type) {
        return Arrays.stream(type.getMethods())
                .anyMatch(method -> AnnotatedElementUtils.hasAnnotation(method, HttpExchange.class));
    }

    /** Spring 7 names the proxy of a client of a group {@code <group>#<interface>}. */
    private static @Nullable String group(String beanName, Class<?> type) {
        String suffix = "#" + type.getName();
        String group = beanName.endsWith(suffix) ? beanName.substring(0, beanName.length() - suffix.length()) : "";
        return group.isEmpty() || group.equals(DEFAULT_GROUP) ? null : group;
    }
}
