package io.idempotence.spring.internal;

import java.util.Map;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.boot.web.servlet.AbstractFilterRegistrationBean;

/** The registrations of an application's servlet filters. */
public final class FilterRegistrations {
    private static final String SECURITY = "springSecurityFilterChain";

    private FilterRegistrations() {}

    /** Returns the registrations by the names of their beans. */
    @SuppressWarnings({"unchecked", "rawtypes"}) // A class literal has no type arguments.
    public static Map<String, AbstractFilterRegistrationBean<?>> in(ListableBeanFactory beans) {
        return (Map) beans.getBeansOfType(AbstractFilterRegistrationBean.class);
    }

    /** Returns whether a registration puts Spring Security's filter in front of the application. */
    public static boolean isSecurity(AbstractFilterRegistrationBean<?> registration) {
        return registration.isEnabled() && SECURITY.equals(registration.getFilterName());
    }
}
