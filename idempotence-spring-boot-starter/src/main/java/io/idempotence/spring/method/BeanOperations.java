package io.idempotence.spring.method;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.AopProxyUtils;
import org.springframework.aop.framework.autoproxy.AbstractAutoProxyCreator;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.config.AutowireCapableBeanFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.config.SmartInstantiationAwareBeanPostProcessor;
import org.springframework.beans.factory.support.AbstractBeanFactory;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.beans.factory.support.BeanDefinitionRegistryPostProcessor;
import org.springframework.core.MethodClassKey;
import org.springframework.core.MethodIntrospector;
import org.springframework.core.annotation.AnnotatedElementUtils;
import org.springframework.stereotype.Controller;
import org.springframework.util.ClassUtils;
import org.springframework.util.ConcurrentReferenceHashMap;

/**
 * The bean methods with an {@code @Idempotent} that has an {@code id}. Beans are searched when they are created, so that a fault fails the
 * start. Thread-safe.
 */
final class BeanOperations implements SmartInstantiationAwareBeanPostProcessor, BeanDefinitionRegistryPostProcessor {
    /** The bean that serves requests in an application with WebFlux. */
    private static final String WEB_HANDLER = "webHandler";

    private final OperationSources sources;
    private final JsonMappers json;
    private final Map<MethodClassKey, BeanOperation> known = new ConcurrentHashMap<>();
    /** Whether the methods of a class have annotations. Every bean is asked for twice. */
    private final Map<Class<?>, Boolean> annotatedTypes = new ConcurrentReferenceHashMap<>();
    /** Classes with annotations, until the start is complete. */
    private final Set<Class<?>> found = ConcurrentHashMap.newKeySet();
    /** The beans of such classes, and their classes. Something may wrap them later: a proxy, or the application. */
    private final Map<String, Class<?>> beansOfClasses = new ConcurrentHashMap<>();
    /** The beans that another one got in a cycle, before they were initialized. */
    private final Set<String> inCycles = ConcurrentHashMap.newKeySet();
    /** The beans of such classes that were created before this post-processor saw beans, and perhaps before those that make proxies. */
    private final Set<String> early = ConcurrentHashMap.newKeySet();
    /** The checks of beans that are not intercepted, by their names, until the start is complete. */
    private final Map<String, Consumer<List<OperationFault>>> unprotected = new ConcurrentHashMap<>();

    /** The methods in the handler mappings, once the application has started; empty in one that does not serve requests. */
    private volatile @Nullable Optional<Set<MethodClassKey>> handlers;

    BeanOperations(OperationSources sources) {
        this.sources = sources;
        this.json = new JsonMappers(sources.beans());
    }

    Collection<BeanOperation> all() {
        return known.values();
    }

    // ---- at start

    /** Only for its place: before Spring creates other post-processors of bean factories, and the beans that these depend on. */
    @Override
    public void postProcessBeanDefinitionRegistry(BeanDefinitionRegistry registry) {}

    /** Another post-processor may depend on beans, which are then created before this one sees them, and before Spring makes proxies. */
    @Override
    public void postProcessBeanFactory(ConfigurableListableBeanFactory factory) {
        for (String beanName : factory.getSingletonNames()) {
            addIfAnnotated(factory.getSingleton(beanName), beanName);
        }
        factory.addBeanPostProcessor(new BeanPostProcessor() {
            @Override
            public Object postProcessBeforeInitialization(Object bean, String beanName) {
                addIfAnnotated(bean, beanName);
                return bean;
            }

            /** Sees what a {@code FactoryBean} makes. */
            @Override
            public Object postProcessAfterInitialization(Object bean, String beanName) {
                if (!beansOfClasses.containsKey(beanName)) {
                    addIfAnnotated(bean, beanName);
                }
                return bean;
            }
        });
    }

    private void addIfAnnotated(@Nullable Object bean, String beanName) {
        if (bean != null && isAnnotatedClass(ClassUtils.getUserClass(bean))) {
            early.add(beanName);
            if (isBeforeProxies()) {
                check(beanName, faults -> addTooEarlyUnlessSingleton(beanName, ClassUtils.getUserClass(bean), faults));
            }
        }
    }

    private boolean isBeforeProxies() {
        return sources.beans() instanceof AbstractBeanFactory factory
                && factory.getBeanPostProcessors().stream().noneMatch(AbstractAutoProxyCreator.class::isInstance);
    }

    /** A singleton is looked up instead. Of other beans, the next one may be a proxy. */
    private void addTooEarlyUnlessSingleton(String beanName, Class<?> type, List<OperationFault> faults) {
        if (!sources.beans().containsSingleton(beanName)) {
            addTooEarly(beanName, type, faults);
        }
    }

    @Override
    public Object getEarlyBeanReference(Object bean, String beanName) {
        if (isAnnotatedClass(ClassUtils.getUserClass(bean))) {
            inCycles.add(beanName);
        }
        return bean;
    }

    @Override
    public Object postProcessBeforeInitialization(Object bean, String beanName) {
        see(ClassUtils.getUserClass(bean), beanName);
        return bean;
    }

    private void see(Class<?> type, String beanName) {
        if (isAnnotatedClass(type)) {
            early.remove(beanName);
            beansOfClasses.put(beanName, type);
            Optional<Set<MethodClassKey>> started = handlers;
            if (started == null) {
                found.add(type);
            } else {
                List<OperationFault> faults = new ArrayList<>();
                find(type, started, faults);
                failOn(faults);
            }
        }
    }

    /**
     * Sees what a {@code FactoryBean} makes, which Spring passes on here only, and which beans got no proxy. Calls of a proxy without a
     * class, such as a repository or an HTTP client, are not intercepted.
     */
    @Override
    public Object postProcessAfterInitialization(Object bean, String beanName) {
        boolean inCycle = inCycles.remove(beanName);
        Class<?> type = bean.getClass();
        if (!beansOfClasses.containsKey(beanName)) {
            Object target = AopProxyUtils.getSingletonTarget(bean);
            see(ClassUtils.getUserClass(target == null ? bean : target), beanName);
            if (Proxy.isProxyClass(type) && isAnnotated(type) && !isOfAnnotatedClass(bean)) {
                check(beanName, faults -> addBareProxy(beanName, type, faults));
            }
        }
        // Spring makes no proxy of the instance of a test.
        if (type == beansOfClasses.get(beanName)
                && !beanName.endsWith(AutowireCapableBeanFactory.ORIGINAL_INSTANCE_SUFFIX)) {
            // While a bean is created and in no cycle, a look-up would make a second proxy of it.
            boolean canBeLookedUp = inCycle || handlers == null;
            check(beanName, faults -> addUnproxied(beanName, type, canBeLookedUp, faults));
        }
        return bean;
    }

    /** Checks a bean at the end of the start, or now if that is over: it may be lazy, or created for each use. */
    private void check(String beanName, Consumer<List<OperationFault>> check) {
        if (handlers == null) {
            unprotected.put(beanName, check);
            // The start may have ended meanwhile, and have missed it.
            if (handlers == null || !unprotected.remove(beanName, check)) {
                return;
            }
        }
        List<OperationFault> faults = new ArrayList<>();
        check.accept(faults);
        failOn(faults);
    }

    /** The target of a proxy may be a bean of its own, which is intercepted itself. */
    private boolean isOfAnnotatedClass(Object proxy) {
        return isAnnotatedClass(AopProxyUtils.ultimateTargetClass(proxy));
    }

    private boolean isAnnotatedClass(Class<?> type) {
        return !Proxy.isProxyClass(type) && isAnnotated(type);
    }

    private void addEarly(String beanName, List<OperationFault> faults) {
        Object bean = sources.beans().getBean(beanName);
        Class<?> type = ClassUtils.getUserClass(bean);
        found.add(type);
        if (!IdempotentAdvice.isIn(bean)) {
            addTooEarly(beanName, type, faults);
        }
    }

    private void addTooEarly(String beanName, Class<?> type, List<OperationFault> faults) {
        addFaults(
                type,
                "the bean '" + beanName + "' is created so early that Spring cannot intercept its calls",
                "Let the post-processor that depends on '" + beanName
                        + "' look it up later, for example by an ObjectProvider or with @Lazy.",
                faults);
    }

    /**
     * Spring makes no proxies of some beans, such as aspects. In a cycle, another bean got the proxy before this one was initialized; later
     * post-processors may have wrapped a singleton.
     */
    private void addUnproxied(String beanName, Class<?> type, boolean canBeLookedUp, List<OperationFault> faults) {
        Object bean = canBeLookedUp ? sources.beans().getSingleton(beanName) : null;
        if (bean == null || bean.getClass() == type || bean instanceof FactoryBean) {
            addFaults(
                    type,
                    "the bean '" + beanName + "' is of a kind whose calls Spring does not intercept, such as an aspect",
                    "Move @Idempotent with its id to a method of another bean.",
                    faults);
        }
    }

    private void addBareProxy(String beanName, Class<?> type, List<OperationFault> faults) {
        addFaults(
                type,
                "the bean '" + beanName
                        + "' is a proxy without a class, such as a repository or an HTTP client,"
                        + " and its calls are not intercepted",
                "Move @Idempotent with its id to a method of a class of your own that calls it.",
                faults);
    }

    /** Adds a fault for each annotated method of a bean. That of a proxy is reported where it is declared. */
    private void addFaults(Class<?> type, String why, String fix, List<OperationFault> faults) {
        annotated(type).keySet().stream()
                .filter(method -> covers(method, type))
                .forEach(method -> sources.faultsAt(
                                Proxy.isProxyClass(type) ? method.getDeclaringClass() : type, method, faults)
                        .add(why, fix));
    }

    /**
     * Reads all annotations of the beans that exist.
     *
     * @param mapped the methods in a handler mapping; null in an application that does not serve requests
     */
    void find(@Nullable Set<MethodClassKey> mapped, List<OperationFault> faults) {
        Optional<Set<MethodClassKey>> started = Optional.ofNullable(mapped);
        handlers = started;
        early.stream().filter(sources.beans()::containsSingleton).forEach(beanName -> addEarly(beanName, faults));
        early.clear();
        for (Class<?> type : found) {
            find(type, started, faults);
        }
        found.clear();
        unprotected.values().forEach(check -> check.accept(faults));
        unprotected.clear();
    }

    static void failOn(List<OperationFault> faults) {
        if (!faults.isEmpty()) {
            throw new OperationFaultsException(faults);
        }
    }

    private void find(Class<?> type, Optional<Set<MethodClassKey>> mapped, List<OperationFault> faults) {
        Set<MethodClassKey> handlers = mapped.orElse(Set.of());
        Map<Method, IdempotentAnnotations.Found> annotated = annotated(type);
        boolean hasHandlers =
                annotated.keySet().stream().anyMatch(method -> handlers.contains(new MethodClassKey(method, type)));
        boolean isController = AnnotatedElementUtils.hasAnnotation(type, Controller.class);
        boolean isReactive = isController && sources.beans().containsBean(WEB_HANDLER);
        // Controllers of an application that does not serve, such as a test, are no mistake.
        boolean mayHaveHandlers = mapped.isPresent() || isReactive || !isController;
        annotated.forEach((method, found) -> {
            MethodClassKey key = new MethodClassKey(method, type);
            if (!found.annotation().value() || handlers.contains(key)) {
                return;
            }
            if (!found.annotation().id().isEmpty()) {
                add(key, method, type, found, faults);
            } else if (mayHaveHandlers && !found.ofInterface() && (found.onMethod() || !hasHandlers)) {
                OperationFaults at = sources.faultsAt(type, method, faults);
                if (isReactive) {
                    at.add(
                            "WebFlux has no idempotence filter, and it has no id",
                            "Move @Idempotent with an id to a method of a service, such as @Idempotent(id = \"#message.id\").");
                } else {
                    at.add(
                            "it is in no handler mapping, and it has no id",
                            "Map the method to requests, for example with @PostMapping in a @RestController, or set the ID of"
                                    + " a call, for example @Idempotent(id = \"#message.id\").");
                }
            }
        });
    }

    private void add(
            MethodClassKey key,
            Method method,
            Class<?> type,
            IdempotentAnnotations.Found annotation,
            List<OperationFault> faults) {
        BeanOperation operation = BeanOperation.of(annotation.annotation(), method, type, sources, json, faults);
        if (operation == null) {
            return;
        }
        for (Map.Entry<MethodClassKey, BeanOperation> other : known.entrySet()) {
            // Two classes may inherit the method.
            if (other.getValue().name().equals(operation.name())
                    && !other.getKey().equals(key)) {
                sources.faultsAt(type, method, faults)
                        .add(
                                "its operation " + operation.name() + " is also that of "
                                        + other.getValue().handler(),
                                "Set different values for operation, so that equal IDs of the two are different IDs.");
                return;
            }
        }
        known.put(key, operation);
    }

    /** Whether annotations cover methods of a class. */
    boolean isAnnotated(Class<?> type) {
        return annotatedTypes.computeIfAbsent(
                type,
                any -> IdempotentAnnotations.isCandidate(type)
                        && !annotated(type).isEmpty());
    }

    /** The methods of a class that its annotations cover: annotated ones, and with an annotation of the class its public ones. */
    static Map<Method, IdempotentAnnotations.Found> annotated(Class<?> type) {
        IdempotentAnnotations.Found ofType = IdempotentAnnotations.of(type);
        return MethodIntrospector.selectMethods(type, (Method method) -> covering(method, ofType));
    }

    // ---- for each call

    /** The annotation with an {@code id} that covers a method of a bean. */
    static boolean covers(Method method, Class<?> type) {
        IdempotentAnnotations.Found annotation = covering(method, IdempotentAnnotations.of(type));
        return annotation != null
                && annotation.annotation().value()
                && !annotation.annotation().id().isEmpty();
    }

    /** @param ofType the annotation of the type, or null */
    private static IdempotentAnnotations.@Nullable Found covering(
            Method method, IdempotentAnnotations.@Nullable Found ofType) {
        if (method.getDeclaringClass() == Object.class || method.isSynthetic()) {
            return null;
        }
        IdempotentAnnotations.Found annotation = IdempotentAnnotations.of(method, ofType);
        boolean isCovered = annotation != null && (annotation.onMethod() || isPublic(method));
        return isCovered ? annotation : null;
    }

    private static boolean isPublic(Method method) {
        return Modifier.isPublic(method.getModifiers()) && !Modifier.isStatic(method.getModifiers());
    }

    BeanOperation operation(Method method, Class<?> type) {
        BeanOperation operation = known.get(new MethodClassKey(method, type));
        if (operation == null) {
            // Called while the application starts, or of a bean that no post-processor saw.
            List<OperationFault> faults = new ArrayList<>();
            IdempotentAnnotations.Found annotation = covering(method, IdempotentAnnotations.of(type));
            if (annotation != null) {
                add(new MethodClassKey(method, type), method, type, annotation, faults);
            }
            failOn(faults);
            operation = Objects.requireNonNull(known.get(new MethodClassKey(method, type)));
        }
        return operation;
    }
}
